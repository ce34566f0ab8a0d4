// SPDX-License-Identifier: Apache-2.0
// Transposed convolution over 1 to 3 spatial axes.
#pragma once

#include "op/image_layout.hpp"

namespace cohort {

struct DeconvolutionAttrs {
  Tuple kernel;                    // 1 to 3 entries
  Tuple stride, dilate, pad, adj;  // completed: as many entries as kernel
  Tuple target_shape;              // empty, or as many entries as kernel; then it decides pad and adj
  int32_t num_filter, num_group;   // num_group divides num_filter
  bool no_bias;
  ImageLayout layout;
};

// The effective padding for data of this (known) shape: pad and adj as given, or those that produce target_shape. The
// output has stride * (length - 1) + dilate * (kernel - 1) + 1 - 2 * pad + adj elements along an axis.
struct DeconvolutionPadding {
  Tuple pad, adj;
};
DeconvolutionPadding deconvolution_padding(const DeconvolutionAttrs &a, const Shape &data);

}  // namespace cohort
