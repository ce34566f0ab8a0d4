// SPDX-License-Identifier: Apache-2.0
// Convolution over two spatial axes whose sampling positions are shifted by an input: DeformableConvolution, and
// ModulatedDeformableConvolution, where a further input weights the samples.
#pragma once

#include "op/image_layout.hpp"

namespace cohort {

// Inputs data, offset (batch, 2 * groups * kernel, output), y before x, mask (batch, groups * kernel, output) of the
// modulated one, weight, and bias unless no_bias. The backward kernels get head gradient, data, offset, mask, weight.
struct DeformableConvolutionAttrs {
  Tuple kernel, stride, dilate, pad;  // completed: two entries each
  int32_t num_filter, num_group;      // num_group divides num_filter
  int32_t num_deformable_group;       // number of groups of channels with separate offsets
  bool no_bias;
  ImageLayout layout;
};

}  // namespace cohort
