// SPDX-License-Identifier: Apache-2.0
// y = x W^T + b over the last axis of x, or over all axes but the first (flatten).
#pragma once

#include "op/op.hpp"

namespace cohort {

struct FullyConnectedAttrs {
  int32_t num_hidden;
  bool no_bias;
  bool flatten;
};

}  // namespace cohort
