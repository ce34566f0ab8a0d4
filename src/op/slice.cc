// SPDX-License-Identifier: Apache-2.0
#include "op/slice.hpp"

#include <algorithm>

namespace cohort {
namespace {

SliceWindow whole(const Shape &data) {
  SliceWindow w;
  for (int64_t length : data) {
    w.begin.push_back(0);
    w.length.push_back(length);
    w.step.push_back(1);
  }
  return w;
}

}  // namespace

// Follows Python slices: negative indices count from the end, indices out of range are clipped. Begin, end and step may
// be any int64: distances are computed between clipped positions, and steps as unsigned magnitudes. If a length is
// unknown, so is that of the slice; also below.
SliceWindow window_of(const SliceAttrs &a, const Shape &data) {
  if (int(a.begin.size()) > data.rank() || a.begin.size() != a.end.size() ||
      (!a.step.empty() && a.step.size() != a.begin.size())) {
    throw Error(Code::kInvalidArgument,
                text("attributes 'begin', 'end' and 'step': expected the same number of elements, at most ",
                     data.rank(), ", found ", a.begin.size(), ", ", a.end.size(), " and ", a.step.size()),
                "begin");
  }
  SliceWindow w = whole(data);
  for (size_t i = 0; i < a.begin.size(); ++i) {
    const int64_t length = data[int(i)], step = i < a.step.size() && a.step[i] ? *a.step[i] : 1;
    if (step == 0)
      throw Error(Code::kInvalidArgument, "attribute 'step': expected steps other than 0, found 0", "step");
    if (length == Shape::kUnknown) continue;
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
    const auto place = [&](const std::optional<int64_t> &given, int64_t missing) {
      return given ? std::max(low, std::min(*given < 0 ? *given + length : *given, high)) : missing;
    };
    const int64_t begin = place(a.begin[i], step > 0 ? 0 : length - 1), end = place(a.end[i], step > 0 ? length : -1);
    const int64_t distance = step > 0 ? end - begin : begin - end;
    const uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
    w.length[i] = distance > 0 ? int64_t(uint64_t(distance - 1) / stride) + 1 : 0;
    w.begin[i] = w.length[i] > 0 ? begin : 0;
    w.step[i] = w.length[i] > 1 ? step : 1;  // for at most one element the step is irrelevant, and may be huge
  }
  return w;
}

SliceWindow window_of(const SliceAxisAttrs &a, const Shape &data) {
  const int axis = normalize_axis(a.axis, data.rank(), "axis");
  const int64_t length = data[axis];
  if (length == Shape::kUnknown) return whole(data);
  const int64_t begin = a.begin < 0 ? a.begin + length : a.begin;
  const int64_t end = !a.end ? length : *a.end < 0 ? *a.end + length : *a.end;
  if (begin < 0 || end > length || begin >= end) {
    throw Error(Code::kInvalidArgument,
                text("slice_axis: expected 0 <= begin < end <= ", length, ", found begin ", a.begin, " and end ",
                     a.end ? std::to_string(*a.end) : "None"),
                "begin");
  }
  SliceWindow w = whole(data);
  w.begin[size_t(axis)] = begin;
  w.length[size_t(axis)] = end - begin;
  return w;
}

SliceWindow window_like(const SliceLikeAttrs &a, const Shape &data, const Shape &like) {
  SliceWindow w = whole(data);
  const auto cut = [&](int axis, int64_t length) {
    if (data[axis] != Shape::kUnknown && length > data[axis]) {
      throw Error(Code::kShape, text("shape_like: expected at most ", data[axis], " on axis ", axis, ", found ", like),
                  "shape_like");
    }
    w.length[size_t(axis)] = length;
  };
  if (a.axes.empty()) {
    if (like.rank() != data.rank()) {
      throw Error(Code::kShape, text("shape_like: expected ", data.rank(), " axes, found ", like), "shape_like");
    }
    for (int axis = 0; axis < data.rank(); ++axis) cut(axis, like[axis]);
  }
  for (int64_t axis : a.axes) {
    cut(normalize_axis(axis, data.rank(), "axes"), like[normalize_axis(axis, like.rank(), "axes")]);
  }
  return w;
}

SliceWindow window_of(const CropAttrs &a, const Shape &data, const Shape *like) {
  if (data.rank() != 4 || (like && like->rank() != 4)) {
    throw Error(Code::kShape, text("data: expected 4 axes, found ", data), "data");
  }
  SliceWindow w = whole(data);
  for (int i = 0; i < 2; ++i) {
    const int axis = 2 + i;
    const int64_t wanted = like ? (*like)[axis] : size_t(i) < a.h_w.size() ? a.h_w[size_t(i)] : 0;
    if (wanted == Shape::kUnknown || data[axis] == Shape::kUnknown) {
      w.length[size_t(axis)] = wanted;
      continue;
    }
    const int64_t least = like ? 0 : 1;
    if (wanted < least || wanted > data[axis]) {
      throw Error(Code::kShape,
                  text("data: expected a window of ", least, " to ", data[axis], " on axis ", axis, " of ", data,
                       ", found ", wanted),
                  "data");
    }
    const int64_t room = data[axis] - wanted;
    const int64_t from = a.center_crop ? room / 2 : size_t(i) < a.offset.size() ? a.offset[size_t(i)] : 0;
    if (from < 0 || from > room) {
      throw Error(Code::kShape,
                  text("data: expected an offset of 0 to ", room, " on axis ", axis, " of ", data, " for a window of ",
                       wanted, ", found ", from),
                  "data");
    }
    w.begin[size_t(axis)] = from;
    w.length[size_t(axis)] = wanted;
  }
  return w;
}

std::vector<int64_t> split_points(const SplitAttrs &a, int64_t length) {
  std::vector<int64_t> points;
  if (a.sections > 0) {
    const int64_t least = length / a.sections, longer = length % a.sections;
    for (int64_t i = 0; i < a.sections; ++i) points.push_back(i * least + std::min(i, longer));
  } else {
    points = a.indices;
    if (points.empty() || points[0] != 0) points.insert(points.begin(), 0);
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i] < 0 || points[i] > length || (i > 0 && points[i] < points[i - 1])) {
        throw Error(Code::kInvalidArgument,
                    text("attribute 'indices': expected ascending numbers from 0 to ", length, ", found ",
                         print_tuple(a.indices)),
                    "indices");
      }
    }
  }
  points.push_back(length);
  return points;
}

namespace {

Gradient of_inputs(std::vector<int> of) { return Gradient::by_kernel(std::move(of)); }

OpBuilder<SliceAttrs> sliced(const char *name, const char *doc, bool has_scalar = false) {
  OpBuilder<SliceAttrs> op(name);
  if (has_scalar) op.attr(&SliceAttrs::scalar, "scalar", 0.0, "The number to write.");
  op.doc(doc)
      .required(&SliceAttrs::begin, "begin", "Start of the slice on each axis; None: the start of the axis.")
      .required(&SliceAttrs::end, "end", "End of the slice on each axis; None: the end of the axis.")
      .attr(&SliceAttrs::step, "step", OptionalTuple(), "Step on each axis; negative: backwards.");
  return op;
}

[[maybe_unused]] const bool defined = [] {
  sliced("slice", "A slice of data, as in Python.")
      .alias("crop")
      .alias("_npi_slice")
      .alias("_npx_slice")
      .alias("_sparse_slice")
      .input("data", "Any shape.")
      .infer_shape([](const SliceAttrs &a, Shapes &in, Shapes &out) {
        if (in[0].rank_known()) unify(out[0], window_of(a, in[0]).shape(), "output");
      })
      .follows()
      .gradient(of_inputs({0}));
  sliced("_slice_assign", "lhs with a slice replaced by rhs.")
      .alias("_crop_assign")
      .alias("_npi_slice_assign")
      .input("lhs", "Any shape.")
      .input("rhs", "The shape of the slice.")
      .infer_shape([](const SliceAttrs &a, Shapes &in, Shapes &out) {
        unify(out[0], in[0], "output");
        unify(in[0], out[0], "lhs");
        if (in[0].rank_known()) unify(in[1], window_of(a, in[0]).shape(), "rhs");
      })
      .gradient(of_inputs({0, 1}));
  sliced("_slice_assign_scalar", "data with a slice set to a number.", /* has_scalar */ true)
      .alias("_crop_assign_scalar")
      .alias("_npi_slice_assign_scalar")
      .input("data", "Any shape.")
      .same_shape()
      .gradient(of_inputs({0}));
  return true;
}();

COHORT_OPERATOR(slice_axis, SliceAxisAttrs)
    .doc("A slice of data along one axis.")
    .required(&SliceAxisAttrs::axis, "axis", "The axis; negative counts from the last.")
    .required(&SliceAxisAttrs::begin, "begin", "Start of the slice; negative counts from the end.")
    .required(&SliceAxisAttrs::end, "end", "End of the slice; None: the end of the axis.")
    .input("data", "Any shape.")
    .infer_shape([](const SliceAxisAttrs &a, Shapes &in, Shapes &out) {
      if (in[0].rank_known()) unify(out[0], window_of(a, in[0]).shape(), "output");
    })
    .follows()
    .gradient(of_inputs({0}));

COHORT_OPERATOR(slice_like, SliceLikeAttrs)
    .doc("Slices data along axes to the lengths of shape_like.")
    .attr(&SliceLikeAttrs::axes, "axes", Tuple(), "The axes; none: all.")
    .input("data", "The array to cut.")
    .input("shape_like", "Only its shape is used.")
    .infer_shape([](const SliceLikeAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known() || !in[1].rank_known()) return;
      unify(out[0], window_like(a, in[0], in[1]).shape(), "output");
    })
    .infer_dtype([](const SliceLikeAttrs &, Dtypes &in, Dtypes &out) {
      unify(out[0], in[0], "output");
      unify(in[0], out[0], "data");
      if (in[1] == Dtype::kNone) in[1] = in[0];
    })
    .gradient(of_inputs({0}));

COHORT_OPERATOR(Crop, CropAttrs)
    .doc("A window of the images in data.")
    .attr(&CropAttrs::offset, "offset", Tuple{0, 0}, "Start of the window.")
    .attr(&CropAttrs::h_w, "h_w", Tuple{0, 0}, "Height and width of the window, if there is no second input.")
    .attr(&CropAttrs::center_crop, "center_crop", false, "Whether the window is centred.")
    .variadic("arg", "num_args", "The images, (N, C, H, W), and optionally an array with the desired height and width.")
    .infer_shape([](const CropAttrs &a, Shapes &in, Shapes &out) {
      if (in.empty() || in.size() > 2) {
        throw Error(Code::kInvalidArgument, text("Crop: expected one or two inputs, found ", in.size()), "num_args");
      }
      if (!in[0].rank_known() || (in.size() > 1 && !in[1].rank_known())) return;
      unify(out[0], window_of(a, in[0], in.size() > 1 ? &in[1] : nullptr).shape(), "output");
    })
    .gradient([](const CropAttrs &) { return of_inputs({}); });

COHORT_OPERATOR(_split_v2, SplitAttrs)
    .alias("_npi_split")
    .doc("Splits data along one axis, at given indices or into parts as equal as possible, longer ones first.")
    .required(&SplitAttrs::indices, "indices", "Where the parts begin.")
    .attr(&SplitAttrs::axis, "axis", 1, "The axis; negative counts from the last.")
    .attr(&SplitAttrs::squeeze_axis, "squeeze_axis", false,
          "Whether to remove the axis, which must have length 1 in each part.")
    .attr(&SplitAttrs::sections, "sections", 0, "The number of parts; 0: use indices.")
    .range(0, 65536)
    .input("data", "The array to split.")
    .names_only_input()
    .outputs([](const SplitAttrs &a) {
      if (a.sections > 0) return int(a.sections);
      return int(a.indices.size()) + (a.indices.empty() || a.indices[0] != 0 ? 1 : 0);
    })
    .infer_shape([](const SplitAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      const int axis = normalize_axis(a.axis, in[0].rank(), "axis");
      const int64_t length = in[0][axis];
      const std::vector<int64_t> points = length == Shape::kUnknown ? std::vector<int64_t>() : split_points(a, length);
      for (size_t i = 0; i < out.size(); ++i) {
        std::vector<int64_t> part(in[0].begin(), in[0].end());
        if (!points.empty()) part[size_t(axis)] = points[i + 1] - points[i];
        if (a.squeeze_axis) {
          if (part[size_t(axis)] != 1 && !points.empty()) {
            throw Error(Code::kShape,
                        text("output ", i, ": expected a length of 1 on axis ", axis, ", found ", part[size_t(axis)]));
          }
          part.erase(part.begin() + axis);
        }
        unify(out[i], Shape(part), "output");
        std::vector<int64_t> whole(out[i].begin(), out[i].end());
        if (a.squeeze_axis) whole.insert(whole.begin() + axis, length);
        whole[size_t(axis)] = length;
        unify(in[0], Shape(whole), "data");
      }
    })
    .gradient(of_inputs({0}));

COHORT_OPERATOR(reverse, ReverseAttrs)
    .alias("flip")
    .doc("Reverses data along axes.")
    .required(&ReverseAttrs::axis, "axis", "The axes; negative ones count from the last.")
    .input("data", "Any shape.")
    .names_only_input()
    .same_shape()
    .gradient(of_inputs({0}));

}  // namespace
}  // namespace cohort
