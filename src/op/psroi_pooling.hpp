// SPDX-License-Identifier: Apache-2.0
// Position-sensitive ROI pooling: means over a grid of windows in regions of images, each window reading a channel of
// its own.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data (batch, output_dim * group_size^2, height, width) and rois, rows of (image, x1, y1, x2, y2). The backward
// kernel gets head gradient and rois.
struct PsRoiPoolingAttrs {
  float spatial_scale;
  int32_t output_dim;   // channels of the output
  int32_t pooled_size;  // number of windows per side
  int32_t group_size;   // completed: number of channel groups per side
};

// The same with windows shifted by a further input trans (regions, 2 * classes, part_size, part_size), x before y, and
// sampled between elements. Outputs the means and the number of samples of each. The backward kernel gets head
// gradient, data, rois, trans if present, and the second output.
struct DeformablePsRoiPoolingAttrs {
  float spatial_scale;
  int32_t output_dim, group_size, pooled_size;
  int32_t part_size;        // completed
  int32_t sample_per_part;  // samples per side of a window
  float trans_std;          // scale of trans, in units of the region's sides
  bool no_trans;
};

}  // namespace cohort
