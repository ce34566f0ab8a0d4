// SPDX-License-Identifier: Apache-2.0
// The means of a grid of windows over regions of images, read between elements.
#pragma once

#include "op/op.hpp"

namespace cohort {

// ROIAlign: rois are rows of (image, x1, y1, x2, y2); RROIAlign: of (image, x, y, width, height, degrees), x and y of
// the centre. The backward kernels get head gradient and rois.
struct RoiAlignAttrs {
  Tuple pooled_size;  // height and width
  float spatial_scale;
  int32_t sample_ratio;     // places read along each side of a window; not above 0: one an element
  bool position_sensitive;  // each window reads a channel of its own
  bool aligned;             // elements are read at their centres, and regions have an area
};

// Of operators over regions: throws kInvalidArgument unless there are a height and a width.
void check_pooled_size(const Tuple &pooled_size);

}  // namespace cohort
