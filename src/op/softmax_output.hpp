// SPDX-License-Identifier: Apache-2.0
// Softmax with the gradient of the cross entropy built in: (softmax - one_hot(label)) * grad_scale, normalised.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets the head gradient if out_grad, then label, then output.
struct SoftmaxOutputAttrs {
  enum Normalization : int32_t { kBatch, kNull, kValid };
  float grad_scale;
  float ignore_label;  // with use_ignore, samples of this class get no gradient
  bool multi_output;   // softmax along axis 1
  bool use_ignore;
  bool preserve_shape;          // true: softmax along the last axis; false: over all axes but the first
  Normalization normalization;  // gradient divided by: number of labels, nothing, number of labels not ignored
  bool out_grad;                // gradient multiplied by the head gradient
  float smooth_alpha;           // label smoothing
};

}  // namespace cohort
