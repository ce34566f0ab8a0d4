// SPDX-License-Identifier: Apache-2.0
// Other shapes for the same elements: Reshape, Flatten (NoAttrs), expand_dims, reshape_like. All are views.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Codes in shape: 0 keeps the length of this axis of data; -1 is inferred; -2 copies all remaining axes; -3 merges two
// axes; -4 splits one into the two lengths that follow (one may be -1).
struct ReshapeAttrs {
  Tuple shape;
  bool reverse;        // match from the last axis; -4 then follows its two lengths
  Tuple target_shape;  // of old files; 0 is inferred
  bool keep_highest;   // with target_shape: axis 0 is kept
};

struct ExpandDimsAttrs {
  int32_t axis;  // where the new axis of length 1 goes; negative counts from the end of the result
};

struct ReshapeLikeAttrs {  // axes begin..end-1; none: from the first, to the last; negative ones count from the end
  std::optional<int32_t> lhs_begin, lhs_end, rhs_begin, rhs_end;
};

}  // namespace cohort
