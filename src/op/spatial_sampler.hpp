// SPDX-License-Identifier: Apache-2.0
// Images read at the places of a grid (BilinearSampler), grids (GridGenerator), and both in one (SpatialTransformer). A
// grid is (batch, 2, height, width): x, then y, of each element, from -1 to 1 across the image.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct GridGeneratorAttrs {
  bool warp;           // from a flow of elements; else from affine matrices
  Tuple target_shape;  // height and width, for affine
};

struct SpatialTransformerAttrs {
  Tuple target_shape;                    // height and width
  int32_t transform_type, sampler_type;  // one of each kind
};

}  // namespace cohort
