// SPDX-License-Identifier: Apache-2.0
// What kernels over regions of images have in common.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/compute.hpp"

namespace cohort {

// Row `index` of rois: the image it names, -1 for one below 0, which means none. Fails for one that there is not.
template <typename C>
COHORT_HOST_DEVICE int64_t image_of_region(C image, [[maybe_unused]] int64_t index, int64_t batch) {
  if (!(image < C(batch))) {
    COHORT_FAILS("rois[", index, "]: expected an image below ", batch, ", found ", image);
    return -1;
  }
  return image < 0 ? -1 : int64_t(image);
}

}  // namespace cohort
