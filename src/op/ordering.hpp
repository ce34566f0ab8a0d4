// SPDX-License-Identifier: Apache-2.0
// Elements in sorted order: topk, sort, argsort.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Equal elements keep their order in data; NaN comes last in either direction.
struct OrderAttrs {  // backward: head gradients, and the indices saved by the forward step
  enum class Result : int32_t { kBoth, kIndices, kMask, kValue };
  std::optional<int32_t> axis;  // none: the flattened array
  int32_t k;                    // number of elements; less than 1: all
  Result ret_typ;
  bool is_ascend;
  Dtype dtype;  // of indices

  bool gives_values() const { return ret_typ == Result::kBoth || ret_typ == Result::kValue; }
};

// An array viewed as (outer, length, inner); the first `kept` elements in order along the middle axis are returned.
struct OrderedAxis {
  int64_t outer = 1, length = 1, inner = 1, kept = 1;
};
OrderedAxis ordered_axis(const OrderAttrs &a, const Shape &data);  // throws kInvalidArgument for a bad axis or k

}  // namespace cohort
