// SPDX-License-Identifier: Apache-2.0
// y = gamma * (x - mean) / std + beta, with mean and std = sqrt(var + eps) over a group of channels of one sample and
// all axes after them, var biased. InstanceNorm: each channel is a group.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data, gamma, beta; outputs output, mean, std. The backward kernel gets the head gradients (1, or 3 with
// output_mean_var, of which only the first counts), data, gamma, mean and std.
struct GroupNormAttrs {
  int32_t num_groups;  // 0: one per channel
  float eps;
  bool output_mean_var;
};

}  // namespace cohort
