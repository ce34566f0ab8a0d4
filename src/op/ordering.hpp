// SPDX-License-Identifier: Apache-2.0
// Elements in order of their size: topk, sort, argsort.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Equal elements keep the order they have in data; NaN comes last, whichever way the order goes.
struct OrderAttrs {  // backward: head gradients, and the indices that the forward step saved
  enum class Result : int32_t { kBoth, kIndices, kMask, kValue };
  std::optional<int32_t> axis;  // none: the whole array, flattened
  int32_t k;                    // how many; less than 1: all
  Result ret_typ;
  bool is_ascend;
  Dtype dtype;  // of indices

  bool gives_values() const { return ret_typ == Result::kBoth || ret_typ == Result::kValue; }
};

// An array as (outer, length, inner), of which `kept` elements along the middle axis come first.
struct OrderedAxis {
  int64_t outer = 1, length = 1, inner = 1, kept = 1;
};
OrderedAxis ordered_axis(const OrderAttrs &a, const Shape &data);  // throws kInvalidArgument for a bad axis or k

}  // namespace cohort
