// SPDX-License-Identifier: Apache-2.0
// Updates of several weights at once. Inputs: for each weight in turn those of the single update (op/update.hpp), then
// the inputs common to all.
#pragma once

#include "op/update.hpp"

namespace cohort {

struct MultiUpdateAttrs {
  std::vector<float> lrs, wds;  // per weight; the preloaded forms take them as the last two inputs
  std::vector<float> etas;      // AdamW, which takes the scale of the gradients as its last input
  float momentum, beta1, beta2, epsilon, rescale_grad, clip_gradient;
  float lower_bound, upper_bound;  // LAMB: bounds of a weight's norm
  bool bias_correction;
  Tuple step_count;
  int32_t num_weights;
  bool preloaded = false;

  UpdateNumbers<double> numbers(size_t weight) const;
};

}  // namespace cohort
