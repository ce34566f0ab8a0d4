// SPDX-License-Identifier: Apache-2.0
// y = gamma * (x - mean) / sqrt(var + eps) + beta for each channel. In training mean and var are those of the batch
// (var biased) and the moving ones follow: new = momentum * old + (1 - momentum) * batch value. They do not in a
// frozen trunk, where neither gamma, beta nor an argument before the layer has a gradient: it stays what it was trained to
// be, as in MXNet. BlockGrad behind it does not freeze it. An operator applied at once in training moves them.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data, gamma, beta, moving_mean, moving_var; outputs output, mean, var, where var is 1 / sqrt(var + eps). The
// backward kernel gets the head gradients (1, or 3 with output_mean_var, of which only the first counts), data and
// gamma, and what the forward kernel saved.
struct BatchNormAttrs {
  double eps;
  float momentum;
  bool fix_gamma;  // gamma counts as 1 and gets a zero gradient
  bool use_global_stats;
  bool output_mean_var;
  int32_t axis;                 // of the channels; negative counts from the last
  std::string key;              // of _contrib_SyncBatchNorm
  bool gives_variance = false;  // output 2 is the variance (_contrib_SyncBatchNorm)
};

}  // namespace cohort
