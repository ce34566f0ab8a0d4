// SPDX-License-Identifier: Apache-2.0
// softmax, softmin, log_softmax, SoftmaxActivation and softmax_cross_entropy.
#pragma once

#include "op/op.hpp"

namespace cohort {

// softmax: exp(x / temperature) normalised along an axis; softmin: of -x; log_softmax: its logarithm. The backward
// kernel gets the head gradient and the output (with use_length, the lengths between them).
struct SoftmaxAttrs {
  int32_t axis;                       // negative counts from the last
  std::optional<double> temperature;  // none: 1
  Dtype dtype;                        // of the output; kNone: that of data
  bool use_length;                    // softmax only: elements from index `length` on are 0
};

// Backward: head gradient, output.
struct SoftmaxActivationAttrs {
  enum Mode : int32_t { kChannel, kInstance };
  Mode mode;  // channel: along axis 1; instance: over all axes but the first
};

// softmax_cross_entropy: the sum over the rows of data (N, C) of -log(softmax(row)[label]), shape (1,). NoAttrs.
// Backward: head gradient, data, label.

}  // namespace cohort
