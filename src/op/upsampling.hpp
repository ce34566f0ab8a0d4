// SPDX-License-Identifier: Apache-2.0
// Enlarges images: repeats each element (nearest), or applies a transposed convolution with one filter per channel
// (bilinear).
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs: arg0, arg1, ... (nearest), each enlarged to `scale` times the size of arg0; or data and weight (bilinear).
struct UpSamplingAttrs {
  int32_t scale, num_filter;
  bool bilinear;
  bool sums;  // adds several inputs; otherwise concatenates their channels

  int64_t kernel() const { return 2 * scale - scale % 2; }
  int64_t pad() const { return scale / 2; }
};

}  // namespace cohort
