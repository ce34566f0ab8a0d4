// SPDX-License-Identifier: Apache-2.0
// Colours of one image, (height, width, channels) with 1 or 3 channels: red, green, blue.
#pragma once

#include "op/op.hpp"
#include "op/update.hpp"  // lists of float as attributes

namespace cohort {

// A factor between two for brightness, contrast and saturation; for hue a share of the circle.
struct ColorFactorAttrs {
  float min_factor, max_factor;
};

struct ColorJitterAttrs {  // largest distances of the factors from 1, and of the hue from 0
  float brightness, contrast, saturation, hue;
};

struct LightingAttrs {
  std::vector<float> alpha;  // of _image_adjust_lighting: shares of the three principal components
  float alpha_std;           // of _image_random_lighting: their standard deviation
};

}  // namespace cohort
