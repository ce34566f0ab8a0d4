// SPDX-License-Identifier: Apache-2.0
// The windows of a convolution as columns of a matrix, and back: im2col, col2im.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct WindowAttrs {                  // backward: head gradient
  Tuple output_size;                  // col2im: height and width of the images
  Tuple kernel, stride, dilate, pad;  // one to three numbers each
};

// Windows along one spatial axis of images.
struct WindowAxis {
  int64_t length, kernel, stride, dilate, pad;
  int64_t windows() const { return (length + 2 * pad - (dilate * (kernel - 1) + 1)) / stride + 1; }
};
// One an axis; throws kShape if a window is larger than the images with their padding.
std::vector<WindowAxis> window_axes(const WindowAttrs &a, const std::vector<int64_t> &lengths);

}  // namespace cohort
