// SPDX-License-Identifier: Apache-2.0
// The plan's internal operator `_fold_batch_norm`: folds a batch norm into the weights of the convolution before it.
//   weight'[c, ...] = weight[c, ...] * s[c],  bias'[c] = (bias[c] - mean[c]) * s[c] + beta[c],  s = gamma / sqrt(var +
//   eps)
// Inputs: weight, bias (if has_bias), gamma, beta, mean, var. Outputs: weight', bias'. With fix_gamma, gamma counts as
// 1 and is overwritten with 1.
#pragma once

namespace cohort {

struct FoldBatchNormAttrs {
  double eps = 0;
  bool fix_gamma = false;
  bool has_bias = false;
};

}  // namespace cohort
