// SPDX-License-Identifier: Apache-2.0
// Splits an array into equal parts along one axis.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets the head gradients of all parts.
struct SliceChannelAttrs {
  int32_t num_outputs;
  int32_t axis;       // negative counts from the last
  bool squeeze_axis;  // parts of length 1 lose the axis
};

}  // namespace cohort
