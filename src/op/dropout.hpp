// SPDX-License-Identifier: Apache-2.0
// y = x * mask / (1 - p), where mask is 1 with probability 1 - p. Out of training: y = x, unless mode is always.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets the head gradient and the mask that the forward kernel saved.
struct DropoutAttrs {
  enum Mode : int32_t { kAlways, kTraining };
  float p;
  Mode mode;
  Tuple axes;  // axes along which all elements share one draw
};

}  // namespace cohort
