// SPDX-License-Identifier: Apache-2.0
// The plan's own operator `_fold_batch_norm`: the weights of a convolution with the batch norm behind it multiplied in.
//   weight'[c, ...] = weight[c, ...] * s[c],  bias'[c] = (bias[c] - mean[c]) * s[c] + beta[c],  s = gamma / sqrt(var +
//   eps)
// Inputs: weight, bias (if has_bias), gamma, beta, mean, var. Outputs: weight', bias'. gamma counts as 1, and is
// overwritten with it, if fix_gamma.
#pragma once

namespace cohort {

struct FoldBatchNormAttrs {
  double eps = 0;
  bool fix_gamma = false;
  bool has_bias = false;
};

}  // namespace cohort
