// SPDX-License-Identifier: Apache-2.0
#include "op/reshape.hpp"

#include <algorithm>

namespace cohort {
namespace {

constexpr int64_t kUnknown = Shape::kUnknown;

int64_t product(int64_t a, int64_t b) {
  if (a == kUnknown || b == kUnknown) return kUnknown;
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw Error(Code::kShape, text("shape: expected fewer than 2^63 elements, found ", a, " times ", b));
  }
  return result;
}

int64_t product(const std::vector<int64_t> &lengths) {
  int64_t all = 1;
  for (int64_t n : lengths) all = product(all, n);
  return all;
}

[[noreturn]] void refuse(const ReshapeAttrs &a, const std::vector<int64_t> &data) {
  throw Error(Code::kShape,
              text("attribute 'shape': expected a shape compatible with the shape ", Shape(data), " of data, found ",
                   print_tuple(a.shape.empty() ? a.target_shape : a.shape), a.reverse ? " in reverse" : ""),
              "shape");
}

// The length of the inferred entry `at` of `result` that makes it as large as data, or kUnknown.
int64_t left_over(const ReshapeAttrs &a, const std::vector<int64_t> &data, std::vector<int64_t> result, size_t at) {
  result[at] = 1;
  const int64_t whole = product(data), others = product(result);
  if (whole == kUnknown || others == kUnknown) return kUnknown;
  if (others == 0) return whole == 0 ? 0 : (refuse(a, data), 0);
  if (whole % others != 0) refuse(a, data);
  return whole / others;
}

// Decodes the codes from left to right.
std::vector<int64_t> decode(const ReshapeAttrs &a, const std::vector<int64_t> &codes,
                            const std::vector<int64_t> &data) {
  std::vector<int64_t> result;
  size_t source = 0;  // next axis of data
  const auto take = [&] {
    if (source >= data.size()) refuse(a, data);
    return data[source++];
  };
  std::ptrdiff_t open = -1;  // position of the -1
  for (size_t i = 0; i < codes.size(); ++i) {
    const int64_t code = codes[i];
    if (code == 0) {
      result.push_back(take());
    } else if (code == -1) {
      if (open >= 0) refuse(a, data);
      open = std::ptrdiff_t(result.size());
      result.push_back(kUnknown);
      ++source;
    } else if (code == -2) {
      while (source < data.size()) result.push_back(data[source++]);
    } else if (code == -3) {
      const int64_t first = take();
      result.push_back(product(first, take()));
    } else if (code == -4) {
      if (i + 2 >= codes.size()) refuse(a, data);
      const int64_t whole = take();
      int64_t one = codes[++i], two = codes[++i];
      if (one < -1 || two < -1 || one == 0 || two == 0 || (one == -1 && two == -1)) refuse(a, data);
      if (whole != kUnknown) {
        if (one == -1) one = whole % two == 0 ? whole / two : (refuse(a, data), 0);
        if (two == -1) two = whole % one == 0 ? whole / one : (refuse(a, data), 0);
        if (product(one, two) != whole) refuse(a, data);
      }
      result.push_back(one);
      result.push_back(two);
    } else if (code > 0) {
      result.push_back(code);
      ++source;
    } else {
      refuse(a, data);
    }
  }
  if (open >= 0) result[size_t(open)] = left_over(a, data, result, size_t(open));
  return result;
}

std::vector<int64_t> reversed(const std::vector<int64_t> &list) { return {list.rbegin(), list.rend()}; }

std::vector<int64_t> from_target(const ReshapeAttrs &a, const std::vector<int64_t> &data) {
  std::vector<int64_t> result(a.target_shape);
  if (result.empty()) return data;
  std::ptrdiff_t open = -1;
  for (size_t i = 0; i < result.size(); ++i) {
    if (i == 0 && a.keep_highest) {
      if (data.empty()) refuse(a, data);
      result[0] = data[0];
    } else if (result[i] < 0 || (result[i] == 0 && open >= 0)) {
      refuse(a, data);
    } else if (result[i] == 0) {
      open = std::ptrdiff_t(i);
    }
  }
  if (open >= 0) result[size_t(open)] = left_over(a, data, result, size_t(open));
  return result;
}

// If exactly one length is unknown, the number of elements determines it.
void complete_one(Shape &shape, const Shape &other) {
  if (!shape.rank_known() || !other.known()) return;
  int64_t rest = 1;
  int open = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != kUnknown) {
      rest = product(rest, shape[axis]);
    } else if (open >= 0) {
      return;
    } else {
      open = axis;
    }
  }
  if (open >= 0 && rest > 0 && other.size() % rest == 0) shape[open] = other.size() / rest;
}

void infer_reshape(const ReshapeAttrs &a, Shapes &in, Shapes &out) {
  Shape &data = in[0];
  if (!data.rank_known()) return;
  const std::vector<int64_t> lengths(data.begin(), data.end());
  std::vector<int64_t> result;
  if (a.shape.empty()) {
    result = from_target(a, lengths);
  } else if (a.reverse) {
    result = reversed(decode(a, reversed(a.shape), reversed(lengths)));
  } else {
    result = decode(a, a.shape, lengths);
  }
  const int64_t before = product(lengths), after = product(result);
  if (before != kUnknown && after != kUnknown && before != after) refuse(a, lengths);
  unify(out[0], Shape(result), "output");
  complete_one(data, out[0]);
  complete_one(out[0], data);
}

void infer_flatten(const NoAttrs &, Shapes &in, Shapes &out) {
  Shape &data = in[0];
  if (!data.rank_known()) return;
  if (data.rank() < 1) throw Error(Code::kShape, "data: expected at least one axis, found ()", "data");
  unify(out[0], Shape{data[0], product(std::vector<int64_t>(data.begin() + 1, data.end()))}, "output");
  if (data[0] == kUnknown) data[0] = out[0][0];
  complete_one(data, out[0]);
}

void infer_expand_dims(const ExpandDimsAttrs &a, Shapes &in, Shapes &out) {
  if (out[0].rank_known()) {
    const int axis = normalize_axis(a.axis, out[0].rank(), "axis");
    std::vector<int64_t> rest(out[0].begin(), out[0].end());
    rest.erase(rest.begin() + axis);
    unify(in[0], Shape(rest), "data");
  }
  if (!in[0].rank_known()) return;
  const int axis = normalize_axis(a.axis, in[0].rank() + 1, "axis");
  std::vector<int64_t> result(in[0].begin(), in[0].end());
  result.insert(result.begin() + axis, 1);
  unify(out[0], Shape(result), "output");
}

struct AxisRange {
  int begin, end;
};
AxisRange axis_range(const std::optional<int32_t> &begin, const std::optional<int32_t> &end, int rank,
                     const char *name) {
  const auto place = [&](const std::optional<int32_t> &given, int64_t missing) {
    const int64_t at = given.value_or(missing);
    return at < 0 ? at + rank : at;
  };
  const int64_t from = place(begin, 0), to = place(end, rank);
  if (from < 0 || from >= to || to > rank) {
    throw Error(Code::kInvalidArgument,
                text("attributes '", name, "_begin' and '", name, "_end': expected axes of ", rank, ", found ", from,
                     " to ", to),
                text(name, "_begin"));
  }
  return {int(from), int(to)};
}

void infer_reshape_like(const ReshapeLikeAttrs &a, Shapes &in, Shapes &out) {
  const Shape &lhs = in[0], &rhs = in[1];
  if (!lhs.rank_known() || !rhs.rank_known()) return;
  if (!a.lhs_begin && !a.lhs_end && !a.rhs_begin && !a.rhs_end) {
    unify(out[0], rhs, "output");
  } else {
    const AxisRange from = axis_range(a.lhs_begin, a.lhs_end, lhs.rank(), "lhs");
    const AxisRange to = axis_range(a.rhs_begin, a.rhs_end, rhs.rank(), "rhs");
    std::vector<int64_t> result(lhs.begin(), lhs.begin() + from.begin);
    result.insert(result.end(), rhs.begin() + to.begin, rhs.begin() + to.end);
    result.insert(result.end(), lhs.begin() + from.end, lhs.end());
    unify(out[0], Shape(result), "output");
  }
  if (lhs.known() && out[0].known() && lhs.size() != out[0].size()) {
    throw Error(Code::kShape, text("lhs: expected as many elements as ", out[0], " has, found ", lhs), "lhs");
  }
}

Gradient gradient() {
  Gradient g;
  g.kind = Gradient::Kind::kPassThrough;
  g.of = {0};
  return g;
}

COHORT_OPERATOR(Reshape, ReshapeAttrs)
    .alias("reshape")
    .doc("Changes the shape and keeps the elements.")
    .attr(
        &ReshapeAttrs::shape, "shape", Tuple(),
        "The new shape. 0: as in data; -1: inferred; -2: all remaining axes; -3: merges two axes; -4: splits one axis "
        "into the next two lengths.")
    .attr(&ReshapeAttrs::reverse, "reverse", false, "Whether to match shape from the last axis.")
    .attr(&ReshapeAttrs::target_shape, "target_shape", Tuple(), "The new shape, in old files; 0: inferred.")
    .attr(&ReshapeAttrs::keep_highest, "keep_highest", false, "Whether target_shape keeps axis 0.")
    .input("data", "Any shape.")
    .infer_shape(infer_reshape)
    .gradient(gradient())
    .view();

COHORT_OPERATOR(Flatten, NoAttrs)
    .alias("flatten")
    .alias("_npx_batch_flatten")
    .doc("Merges all axes except the first.")
    .input("data", "At least one axis.")
    .infer_shape(infer_flatten)
    .gradient(gradient())
    .view();

COHORT_OPERATOR(expand_dims, ExpandDimsAttrs)
    .alias("_npi_expand_dims")
    .doc("Adds an axis of length 1.")
    .required(&ExpandDimsAttrs::axis, "axis", "Position of the axis; negative counts from the end of the result.")
    .input("data", "Any shape.")
    .infer_shape(infer_expand_dims)
    .gradient(gradient())
    .view();

COHORT_OPERATOR(reshape_like, ReshapeLikeAttrs)
    .alias("_npx_reshape_like")
    .doc("Reshapes lhs to the shape of rhs, or replaces some of its axes by axes of rhs.")
    .attr(&ReshapeLikeAttrs::lhs_begin, "lhs_begin", std::nullopt, "The first axis of lhs to replace; None: 0.")
    .attr(&ReshapeLikeAttrs::lhs_end, "lhs_end", std::nullopt,
          "The axis after the last one to replace; None: to the end.")
    .attr(&ReshapeLikeAttrs::rhs_begin, "rhs_begin", std::nullopt, "The first axis of rhs to use; None: 0.")
    .attr(&ReshapeLikeAttrs::rhs_end, "rhs_end", std::nullopt, "The axis after the last one to use; None: to the end.")
    .input("lhs", "The elements.")
    .input("rhs", "Only its shape is used.")
    .infer_shape(infer_reshape_like)
    .infer_dtype([](const ReshapeLikeAttrs &, Dtypes &in, Dtypes &out) {
      unify(out[0], in[0], "output");
      unify(in[0], out[0], "lhs");
      if (in[1] == Dtype::kNone) in[1] = in[0];
    })
    .gradient(gradient())
    .view();

}  // namespace
}  // namespace cohort
