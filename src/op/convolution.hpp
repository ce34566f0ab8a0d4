// SPDX-License-Identifier: Apache-2.0
// Convolution over 1 to 3 spatial axes. Convolution_v1 in old files is the same operator.
#pragma once

#include "op/image_layout.hpp"

namespace cohort {

struct ConvolutionAttrs {
  Tuple kernel;                   // 1 to 3 entries
  Tuple stride, dilate, pad;      // completed: as many entries as kernel
  int32_t num_filter, num_group;  // num_group divides num_filter
  bool no_bias;
  ImageLayout layout;
};

}  // namespace cohort
