// SPDX-License-Identifier: Apache-2.0
// The means of a grid of windows over regions of images, where each window reads a channel of its own.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data (batch, output_dim * group_size^2, height, width) and rois, rows of (image, x1, y1, x2, y2). The backward
// kernel gets head gradient and rois.
struct PsRoiPoolingAttrs {
  float spatial_scale;
  int32_t output_dim;   // channels of the output
  int32_t pooled_size;  // windows along a side
  int32_t group_size;   // completed: windows that read apart, along a side
};

// The same with windows moved by a further input, trans (regions, 2 * classes, part_size, part_size), x before y.
// Windows read places between elements. Outputs the means, and of how many places each is. The backward kernel gets
// head gradient, data, rois, trans if there is one, and the second output.
struct DeformablePsRoiPoolingAttrs {
  float spatial_scale;
  int32_t output_dim, group_size, pooled_size;
  int32_t part_size;        // completed
  int32_t sample_per_part;  // places along a side of a window
  float trans_std;          // how far trans moves, by the sides of the region
  bool no_trans;
};

}  // namespace cohort
