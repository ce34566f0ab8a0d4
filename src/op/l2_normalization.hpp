// SPDX-License-Identifier: Apache-2.0
// y = x / sqrt(sum(x^2) + eps), with the sum over a sample, over the channels of a position, or over the positions of a
// channel.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets head gradient and data.
struct L2NormalizationAttrs {
  enum Mode : int32_t { kInstance, kChannel, kSpatial } mode;
  float eps;
};

}  // namespace cohort
