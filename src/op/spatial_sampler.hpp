// SPDX-License-Identifier: Apache-2.0
// Samples images at the positions of a grid (BilinearSampler), generates grids (GridGenerator), or both
// (SpatialTransformer). A grid is (batch, 2, height, width): x, then y, each from -1 to 1 across the image.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct GridGeneratorAttrs {
  bool warp;           // true: grid from a flow in elements; false: from affine matrices
  Tuple target_shape;  // height and width, for affine
};

struct SpatialTransformerAttrs {
  Tuple target_shape;                    // height and width
  int32_t transform_type, sampler_type;  // only one value of each is supported
};

}  // namespace cohort
