// SPDX-License-Identifier: Apache-2.0
// Enlarges images: each element repeated (nearest), or by a transposed convolution of each channel with a filter of its
// own (bilinear).
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs: arg0, arg1, ... (nearest), each brought to `scale` times the size of arg0; or data and weight (bilinear).
struct UpSamplingAttrs {
  int32_t scale, num_filter;
  bool bilinear;
  bool sums;  // of several inputs; else their channels follow each other

  int64_t kernel() const { return 2 * scale - scale % 2; }
  int64_t pad() const { return scale / 2; }
};

}  // namespace cohort
