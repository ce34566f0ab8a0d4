// SPDX-License-Identifier: Apache-2.0
#include "op/reduce.hpp"

#include <algorithm>
#include <map>

#include "op/dtype_words.hpp"

namespace cohort {

std::vector<int> distinct_axes(const Tuple &axes, int rank, const char *name) {
  std::vector<int> distinct;
  for (const int64_t given : axes) {
    const int axis = normalize_axis(given, rank, name);
    if (std::count(distinct.begin(), distinct.end(), axis) > 0) {
      throw Error(Code::kInvalidArgument, text(name, ": expected each axis once, found ", print_tuple(axes)), name);
    }
    distinct.push_back(axis);
  }
  return distinct;
}

std::vector<bool> axes_to_reduce(const std::optional<Tuple> &axis, bool exclude, int rank, const char *name) {
  if (!axis || axis->empty()) return std::vector<bool>(size_t(rank), true);
  std::vector<bool> reduced(size_t(rank), exclude);
  for (const int a : distinct_axes(*axis, rank, name)) reduced[size_t(a)] = !exclude;
  return reduced;
}

Shape kept_shape(const Shape &shape, const std::vector<bool> &reduced) {
  Shape kept = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (reduced[size_t(axis)]) kept[axis] = 1;
  }
  return kept;
}

Shape reduced_shape(const Shape &shape, const std::vector<bool> &reduced, bool keepdims) {
  if (keepdims) return kept_shape(shape, reduced);
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[size_t(axis)]) dims.push_back(shape[axis]);
  }
  if (dims.empty()) dims.push_back(1);
  return Shape(dims);
}

namespace {

using Combine = Reduction::Combine;
using Finish = Reduction::Finish;

struct ReductionRule {
  Reduction forward;
  PointwiseCode backward;
};

// The rule for norm is that of ord=2.
const std::map<std::string, ReductionRule> &reduction_rules() {
  using Code = PointwiseCode;
  static const std::map<std::string, ReductionRule> rules = {
      {"sum", {{Code::kCopy, Combine::kSum}, Code::kCopy}},
      {"mean", {{Code::kCopy, Combine::kSum, false, Finish::kDivide}, Code::kDivScalar}},
      {"prod", {{Code::kCopy, Combine::kProduct}, Code::kProdGrad}},
      {"nansum", {{Code::kCopy, Combine::kSum, true}, Code::kNanSumGrad}},
      {"nanprod", {{Code::kCopy, Combine::kProduct, true}, Code::kNanProdGrad}},
      {"max", {{Code::kCopy, Combine::kMaximum}, Code::kMaskEqual}},
      {"min", {{Code::kCopy, Combine::kMinimum}, Code::kMaskEqual}},
      {"_square_sum", {{Code::kSquare, Combine::kSum}, Code::kSquareGrad}},
      {"norm", {{Code::kSquare, Combine::kSum, false, Finish::kRoot}, Code::kNormGrad}},
  };
  return rules;
}

bool is_sum_of_magnitudes(const std::string &op, const void *attrs) {
  return op == "norm" && static_cast<const NormAttrs *>(attrs)->ord == 1;
}

}  // namespace

const std::vector<std::string> &reducing_operators() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto &rule : reduction_rules()) all.push_back(rule.first);
    return all;
  }();
  return names;
}

Reduction reduction_of(const std::string &op, const void *attrs) {
  if (is_sum_of_magnitudes(op, attrs)) return {PointwiseCode::kAbs, Combine::kSum};
  return reduction_rules().at(op).forward;
}

std::vector<bool> axes_reduced_by(const std::string &op, const void *attrs, const Shape &data) {
  if (op == "norm") return axes_to_reduce(static_cast<const NormAttrs *>(attrs)->axis, false, data.rank());
  const auto &a = *static_cast<const ReduceAttrs *>(attrs);
  return axes_to_reduce(a.axis, a.exclude, data.rank());
}

PointwiseCall reduction_gradient(const std::string &op, const void *attrs, const Shape &data, const Shape &out) {
  PointwiseCall call{is_sum_of_magnitudes(op, attrs) ? PointwiseCode::kAbsGrad : reduction_rules().at(op).backward};
  const int operands = pointwise_operands(call.code);
  call.a = 0;
  if (operands > 1) call.b = 1;
  if (operands > 2) call.c = 2;
  if (call.code == PointwiseCode::kDivScalar) call.s = out.size() > 0 ? double(data.size()) / double(out.size()) : 1;
  return call;
}

namespace {

Gradient kernel_gradient(std::vector<int> inputs, std::vector<int> outputs) {
  return Gradient::by_kernel({0}, std::move(inputs), std::move(outputs));
}

OpBuilder<ReduceAttrs> reduction(const char *name, const char *doc) {
  OpBuilder<ReduceAttrs> op(name);
  op.doc(doc)
      .attr(&ReduceAttrs::axis, "axis", std::nullopt, "The axes to reduce over; None: all.")
      .attr(&ReduceAttrs::keepdims, "keepdims", false, "Whether reduced axes are kept with length 1.")
      .attr(&ReduceAttrs::exclude, "exclude", false, "Whether to reduce all axes except these.")
      .input("data", "Any shape.")
      .infer_shape([](const ReduceAttrs &a, Shapes &in, Shapes &out) {
        if (!in[0].rank_known()) return;
        unify(out[0], reduced_shape(in[0], axes_to_reduce(a.axis, a.exclude, in[0].rank()), a.keepdims), "output");
      });
  return op;
}

[[maybe_unused]] const bool defined = [] {
  reduction("sum", "The sum over axes.").alias("sum_axis").alias("_sparse_sum").gradient(kernel_gradient({}, {}));
  reduction("mean", "The mean over axes.").alias("_sparse_mean").gradient(kernel_gradient({}, {}));
  reduction("prod", "The product over axes.").gradient(kernel_gradient({0}, {0}));
  reduction("nansum", "The sum over axes, ignoring NaN.").gradient(kernel_gradient({0}, {}));
  reduction("nanprod", "The product over axes, ignoring NaN.").gradient(kernel_gradient({0}, {0}));
  reduction("max", "The largest element over axes.").alias("max_axis").gradient(kernel_gradient({0}, {0}));
  reduction("min", "The smallest element over axes.").alias("min_axis").gradient(kernel_gradient({0}, {0}));
  reduction("_square_sum", "The sum of squares over axes.").gradient(kernel_gradient({0}, {}));
  return true;
}();

COHORT_OPERATOR(norm, NormAttrs)
    .alias("_sparse_norm")
    .doc("The L1 or L2 norm over axes.")
    .attr(&NormAttrs::ord, "ord", 2, "1: the sum of |x|; 2: the root of the sum of squares.")
    .range(1, 2)
    .attr(&NormAttrs::axis, "axis", std::nullopt, "The axes to reduce over; None: all.")
    .choice(&NormAttrs::out_dtype, "out_dtype",
            dtype_words({Dtype::kNone, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64,
                         Dtype::kInt8}),
            Dtype::kNone, "The type of the output; None: that of data.")
    .attr(&NormAttrs::keepdims, "keepdims", false, "Whether reduced axes are kept with length 1.")
    .input("data", "Any shape.")
    .infer_shape([](const NormAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      unify(out[0], reduced_shape(in[0], axes_to_reduce(a.axis, false, in[0].rank()), a.keepdims), "output");
    })
    .infer_dtype([](const NormAttrs &a, Dtypes &in, Dtypes &out) {
      unify(out[0], a.out_dtype == Dtype::kNone ? in[0] : a.out_dtype, "output");
      if (a.out_dtype == Dtype::kNone) unify(in[0], out[0], "data");
    })
    .gradient([](const NormAttrs &a) { return a.ord == 1 ? kernel_gradient({0}, {}) : kernel_gradient({0}, {0}); });

// As in MXNet, indices have the type of the data, so large ones are rounded to its precision.
void infer_arg_shape(const ArgReduceAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  std::optional<Tuple> axis;
  if (a.axis) axis = Tuple{*a.axis};
  unify(out[0], reduced_shape(in[0], axes_to_reduce(axis, false, in[0].rank()), a.keepdims), "output");
}

COHORT_OPERATOR(argmax, ArgReduceAttrs)
    .doc("The index of the first largest element along an axis, in the type of data.")
    .attr(&ArgReduceAttrs::axis, "axis", std::nullopt, "The axis; None: the flattened array.")
    .attr(&ArgReduceAttrs::keepdims, "keepdims", false, "Whether the axis is kept with length 1.")
    .input("data", "Any shape.")
    .infer_shape(infer_arg_shape);

COHORT_OPERATOR(argmin, ArgReduceAttrs)
    .doc("The index of the first smallest element along an axis, in the type of data.")
    .attr(&ArgReduceAttrs::axis, "axis", std::nullopt, "The axis; None: the flattened array.")
    .attr(&ArgReduceAttrs::keepdims, "keepdims", false, "Whether the axis is kept with length 1.")
    .input("data", "Any shape.")
    .infer_shape(infer_arg_shape);

COHORT_OPERATOR(argmax_channel, NoAttrs)
    .doc("The index of the first largest element along axis 1, in the type of data.")
    .input("data", "At least two axes.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      std::vector<bool> reduced(size_t(in[0].rank()), false);
      reduced[size_t(normalize_axis(1, in[0].rank(), "axis"))] = true;
      unify(out[0], reduced_shape(in[0], reduced, false), "output");
    });

[[noreturn]] void refuse_broadcast(const Shape &data, const Shape &to) {
  throw Error(Code::kShape, text("data: expected lengths 1 or those of ", to, ", found ", data), "data");
}

void check_broadcast(const Shape &data, const Shape &to) {
  if (data.rank() != to.rank()) refuse_broadcast(data, to);
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (data[axis] != Shape::kUnknown && data[axis] != 1 && to[axis] != Shape::kUnknown && data[axis] != to[axis]) {
      refuse_broadcast(data, to);
    }
  }
}

COHORT_OPERATOR(broadcast_to, BroadcastToAttrs)
    .doc("Repeats data along its axes of length 1 to the given shape.")
    .attr(&BroadcastToAttrs::shape, "shape", Tuple(), "The shape; 0 keeps the length of data.")
    .input("data", "As many axes as shape has.")
    .infer_shape([](const BroadcastToAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      Shape to(a.shape);
      if (to.rank() != in[0].rank()) refuse_broadcast(in[0], to);
      for (int axis = 0; axis < to.rank(); ++axis) {
        if (to[axis] == 0) to[axis] = in[0][axis];
      }
      check_broadcast(in[0], to);
      unify(out[0], to, "output");
    })
    .gradient(kernel_gradient({}, {}));

COHORT_OPERATOR(broadcast_axis, BroadcastAxisAttrs)
    .alias("broadcast_axes")
    .doc("Repeats data along axes of length 1.")
    .attr(&BroadcastAxisAttrs::axis, "axis", Tuple(), "The axes to repeat.")
    .attr(&BroadcastAxisAttrs::size, "size", Tuple(), "The length of each of these axes in the output.")
    .check([](BroadcastAxisAttrs &a) {
      if (a.axis.size() != a.size.size()) {
        throw Error(
            Code::kInvalidArgument,
            text("attribute 'size': expected ", a.axis.size(), " lengths, one for each axis, found ", a.size.size()),
            "size");
      }
    })
    .input("data", "Any shape.")
    .infer_shape([](const BroadcastAxisAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      Shape to = in[0];
      const std::vector<int> axes = distinct_axes(a.axis, to.rank(), "axis");
      for (size_t i = 0; i < axes.size(); ++i) to[axes[i]] = a.size[i];
      check_broadcast(in[0], to);
      unify(out[0], to, "output");
    })
    .gradient(kernel_gradient({}, {}));

COHORT_OPERATOR(broadcast_like, BroadcastLikeAttrs)
    .doc("Repeats lhs along axes of length 1 to the lengths of rhs.")
    .attr(&BroadcastLikeAttrs::lhs_axes, "lhs_axes", std::nullopt, "The axes of lhs; None, here or for rhs_axes: all.")
    .attr(&BroadcastLikeAttrs::rhs_axes, "rhs_axes", std::nullopt, "The axes of rhs whose lengths are used.")
    .check([](BroadcastLikeAttrs &a) {
      // As in MXNet, one without the other is ignored.
      if (!a.lhs_axes || !a.rhs_axes) a.lhs_axes = a.rhs_axes = std::nullopt;
      if (a.lhs_axes && a.lhs_axes->size() != a.rhs_axes->size()) {
        throw Error(Code::kInvalidArgument, "attributes 'lhs_axes' and 'rhs_axes': expected as many axes in both",
                    "lhs_axes");
      }
    })
    .input("lhs", "The array to repeat.")
    .input("rhs", "Only its shape is used.")
    .infer_shape([](const BroadcastLikeAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known() || !in[1].rank_known()) return;
      Shape to = a.lhs_axes ? in[0] : in[1];
      for (size_t i = 0; a.lhs_axes && i < a.lhs_axes->size(); ++i) {
        to[normalize_axis((*a.lhs_axes)[i], to.rank(), "lhs_axes")] =
            in[1][normalize_axis((*a.rhs_axes)[i], in[1].rank(), "rhs_axes")];
      }
      check_broadcast(in[0], to);
      unify(out[0], to, "output");
    })
    .infer_dtype([](const BroadcastLikeAttrs &, Dtypes &in, Dtypes &out) {
      unify(in[0], out[0], "lhs");
      unify(out[0], in[0], "output");
      if (in[1] == Dtype::kNone) in[1] = in[0];
    })
    .gradient(kernel_gradient({}, {}));

}  // namespace
}  // namespace cohort
