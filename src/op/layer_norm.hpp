// SPDX-License-Identifier: Apache-2.0
// y = gamma * (x - mean) / std + beta along one axis, with std = sqrt(var + eps), var biased.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data, gamma, beta; outputs output, mean, std. The backward kernel gets the head gradients (1, or 3 with
// output_mean_var, of which only the first counts), data, gamma, mean and std.
struct LayerNormAttrs {
  int32_t axis;  // negative counts from the last
  float eps;
  bool output_mean_var;
};

}  // namespace cohort
