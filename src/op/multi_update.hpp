// SPDX-License-Identifier: Apache-2.0
// Updates of several weights at once: for each weight the inputs of the single form (op/update.hpp), one after the
// other, and behind them what counts for all.
#pragma once

#include "op/update.hpp"

namespace cohort {

struct MultiUpdateAttrs {
  std::vector<float> lrs, wds;  // of each weight; the preloaded forms have them as inputs, the last two
  std::vector<float> etas;      // AdamW; the scale of the gradients is the last input
  float momentum, beta1, beta2, epsilon, rescale_grad, clip_gradient;
  float lower_bound, upper_bound;  // LAMB: of the norm of a weight
  bool bias_correction;
  Tuple step_count;
  int32_t num_weights;
  bool preloaded = false;

  UpdateNumbers<double> numbers(size_t weight) const;
};

}  // namespace cohort
