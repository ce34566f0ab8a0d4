// SPDX-License-Identifier: Apache-2.0
// Operators that start or stop gradients: MakeLoss and make_loss return data and start with a constant gradient;
// BlockGrad returns data and passes no gradient back.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The gradient is grad_scale, divided by the batch size, or by the number of elements above valid_thresh. The backward
// kernel of MakeLoss gets the output if normalization is valid, and nothing otherwise; that of make_loss (NoAttrs, the
// gradient is 1) gets nothing. BlockGrad (NoAttrs) has none.
struct MakeLossAttrs {
  enum Normalization : int32_t { kBatch, kNull, kValid };
  float grad_scale;
  float valid_thresh;
  Normalization normalization;
};

}  // namespace cohort
