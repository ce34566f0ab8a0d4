// SPDX-License-Identifier: Apache-2.0
// Boxes encoded relative to anchors: box_encode, which has no attributes, and box_decode.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct BoxDecodeAttrs {
  float std0, std1, std2, std3;
  float clip;   // not above 0: no limit
  bool center;  // format of the anchors, as BoxIouAttrs::center
};

}  // namespace cohort
