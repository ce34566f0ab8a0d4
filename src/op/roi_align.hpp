// SPDX-License-Identifier: Apache-2.0
// ROI align: means over a grid of windows in regions of images, interpolated between elements.
#pragma once

#include "op/op.hpp"

namespace cohort {

// ROIAlign: rois are rows of (image, x1, y1, x2, y2); RROIAlign: of (image, x, y, width, height, degrees) with the
// centre x, y. The backward kernels get head gradient and rois.
struct RoiAlignAttrs {
  Tuple pooled_size;  // height and width
  float spatial_scale;
  int32_t sample_ratio;     // samples per side of a window; not above 0: one per element
  bool position_sensitive;  // each window reads a channel of its own
  bool aligned;             // elements are sampled at their centres; regions must have a positive width and height
};

// For operators over regions: throws kInvalidArgument unless there are a height and a width, both positive.
void check_pooled_size(const Tuple &pooled_size);

}  // namespace cohort
