// SPDX-License-Identifier: Apache-2.0
// Resizes images: _contrib_AdaptiveAvgPooling2D averages windows, _contrib_BilinearResize2D interpolates. Both keep
// batch and channels.
#pragma once

#include <optional>

#include "op/op.hpp"

namespace cohort {

// Row i of n is the mean of rows floor(i H / n) to ceil((i + 1) H / n); columns likewise.
struct AdaptiveAvgPoolingAttrs {
  Tuple output_size;  // completed to height and width
};

struct BilinearResizeAttrs {
  enum Mode : int32_t { kSize, kLike, kOddScale, kToEvenDown, kToEvenUp, kToOddDown, kToOddUp } mode;
  int32_t height, width;
  std::optional<float> scale_height, scale_width;
  bool align_corners;  // true: the centres of the corner elements coincide; false: the outer edges do
};

}  // namespace cohort
