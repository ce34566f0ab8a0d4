// SPDX-License-Identifier: Apache-2.0
// Images of another size: by means of windows (_contrib_AdaptiveAvgPooling2D) or between neighbours
// (_contrib_BilinearResize2D). Both keep batch and channels.
#pragma once

#include <optional>

#include "op/op.hpp"

namespace cohort {

// Row i of n is the mean of rows floor(i H / n) to ceil((i + 1) H / n); columns alike.
struct AdaptiveAvgPoolingAttrs {
  Tuple output_size;  // completed: height and width
};

struct BilinearResizeAttrs {
  enum Mode : int32_t { kSize, kLike, kOddScale, kToEvenDown, kToEvenUp, kToOddDown, kToOddUp } mode;
  int32_t height, width;
  std::optional<float> scale_height, scale_width;
  bool align_corners;  // the corners of both images meet; else those of their corner elements
};

}  // namespace cohort
