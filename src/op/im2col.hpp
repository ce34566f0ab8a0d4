// SPDX-License-Identifier: Apache-2.0
// im2col copies the windows of a convolution into the columns of a matrix; col2im adds them back.
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
// One per axis. Throws kShape if a window is larger than the padded images.
std::vector<WindowAxis> window_axes(const WindowAttrs &a, const std::vector<int64_t> &lengths);

}  // namespace cohort
