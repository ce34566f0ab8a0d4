// SPDX-License-Identifier: Apache-2.0
// Pad: images with a border.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct PadAttrs {  // backward: head gradient
  enum class Mode : int32_t { kConstant, kEdge, kReflect };
  Mode mode;
  Tuple pad_width;  // two numbers per axis: before and after
  double constant_value;
};

// The source index of element `at` of a padded axis; -1 if it is the constant.
inline int64_t padded_from(PadAttrs::Mode mode, int64_t at, int64_t before, int64_t length) {
  const int64_t from = at - before;
  if (from >= 0 && from < length) return from;
  if (mode == PadAttrs::Mode::kConstant) return -1;
  if (mode == PadAttrs::Mode::kEdge) return from < 0 ? 0 : length - 1;
  return from < 0 ? -from : 2 * (length - 1) - from;
}

}  // namespace cohort
