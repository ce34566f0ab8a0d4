// SPDX-License-Identifier: Apache-2.0
// Common code of kernels over regions of images.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/compute.hpp"

namespace cohort {

// The image that row `index` of rois names; -1 for a negative number, which means none. Fails if there is no such
// image.
template <typename Backend, typename C>
COHORT_HOST_DEVICE int64_t image_of_region(C image, int64_t index, int64_t batch) {
  if (!(image < C(batch))) {
    Backend::fail("rois[", index, "]: expected an image below ", batch, ", found ", image);
    return -1;
  }
  return image < 0 ? -1 : int64_t(image);
}

}  // namespace cohort
