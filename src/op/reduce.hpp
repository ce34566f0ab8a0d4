// SPDX-License-Identifier: Apache-2.0
// Reductions over axes (sum, mean, prod, nansum, nanprod, max, min, _square_sum, norm, argmax, argmin) and broadcasts
// (broadcast_to, broadcast_axis, broadcast_like).
#pragma once

#include "op/pointwise.hpp"

namespace cohort {

struct ReduceAttrs {
  std::optional<Tuple> axis;  // none or empty: all axes
  bool keepdims;
  bool exclude;  // reduce all axes except these
};

struct NormAttrs {
  int32_t ord;  // 1: sum of |x|, 2: root of the sum of squares
  std::optional<Tuple> axis;
  Dtype out_dtype;  // kNone: that of data
  bool keepdims;
};

struct ArgReduceAttrs {
  std::optional<int32_t> axis;  // none: over the whole array
  bool keepdims;
};

struct BroadcastToAttrs {
  Tuple shape;  // 0 keeps the length of data
};

struct BroadcastAxisAttrs {
  Tuple axis, size;
};

struct BroadcastLikeAttrs {
  std::optional<Tuple> lhs_axes, rhs_axes;  // none: all axes
};

// The axes, converted to non-negative numbers. Throws kInvalidArgument naming the attribute if an axis is out of range
// or named twice.
std::vector<int> distinct_axes(const Tuple &axes, int rank, const char *name);
// One flag per axis of data; true: reduced. Throws as distinct_axes() does.
std::vector<bool> axes_to_reduce(const std::optional<Tuple> &axis, bool exclude, int rank, const char *name = "axis");
// The result's shape with reduced axes kept at length 1.
Shape kept_shape(const Shape &shape, const std::vector<bool> &reduced);
// The result's shape; (1,) if the array is reduced to one number.
Shape reduced_shape(const Shape &shape, const std::vector<bool> &reduced, bool keepdims);

// A reduction, for the kernels of all backends: a functor is applied to each element, results are combined, then
// finished.
struct Reduction {
  enum class Combine : uint8_t { kSum, kProduct, kMaximum, kMinimum };  // a NaN propagates
  enum class Finish : uint8_t { kNone, kDivide, kRoot };                // kDivide: by the number of elements
  PointwiseCode of;                                                     // kCopy, kAbs or kSquare
  Combine combine;
  bool skips_nan = false;
  Finish finish = Finish::kNone;
};
// The operators that reduce, except argmax and argmin, and the work of their kernels. `op` is the forward operator.
const std::vector<std::string> &reducing_operators();
Reduction reduction_of(const std::string &op, const void *attrs);
std::vector<bool> axes_reduced_by(const std::string &op, const void *attrs, const Shape &data);
// The gradient from head gradient, data and output; head gradient and output are repeated over the reduced axes.
PointwiseCall reduction_gradient(const std::string &op, const void *attrs, const Shape &data, const Shape &out);

}  // namespace cohort
