// SPDX-License-Identifier: Apache-2.0
// What kernels over regions of images have in common.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/error.hpp"

namespace cohort {

// Row `index` of rois: the image it names, -1 for one below 0, which means none. Throws kExecution for one that there
// is not.
template <typename C>
int64_t image_of_region(C image, int64_t index, int64_t batch) {
  if (!(image < C(batch))) {
    throw Error(Code::kExecution, text("rois[", index, "]: expected an image below ", batch, ", found ", image));
  }
  return image < 0 ? -1 : int64_t(image);
}

}  // namespace cohort
