// SPDX-License-Identifier: Apache-2.0
// Colour adjustments of one image (height, width, channels) with 1 channel, or 3: red, green, blue.
#pragma once

#include "op/op.hpp"
#include "op/update.hpp"  // lists of float as attributes

namespace cohort {

// Brightness, contrast and saturation: a random factor between the two. Hue: a fraction of the colour circle.
struct ColorFactorAttrs {
  float min_factor, max_factor;
};

struct ColorJitterAttrs {  // largest deviations of the factors from 1, and of the hue from 0
  float brightness, contrast, saturation, hue;
};

struct LightingAttrs {
  std::vector<float> alpha;  // _image_adjust_lighting: weights of the three principal components
  float alpha_std;           // _image_random_lighting: standard deviation of those weights
};

}  // namespace cohort
