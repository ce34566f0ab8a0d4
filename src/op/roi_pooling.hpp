// SPDX-License-Identifier: Apache-2.0
// The maxima over a grid of windows in regions of images.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data (batch, channels, height, width) and rois, rows of (image, x1, y1, x2, y2). The backward kernel gets head
// gradient, data and rois.
struct RoiPoolingAttrs {
  Tuple pooled_size;  // height and width
  float spatial_scale;
};

}  // namespace cohort
