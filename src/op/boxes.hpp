// SPDX-License-Identifier: Apache-2.0
// Boxes of object detection.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct BoxIouAttrs {
  bool center;  // boxes are (x, y, width, height) with x and y of the centre; else (left, top, right, bottom)
};

}  // namespace cohort
