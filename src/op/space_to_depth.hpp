// SPDX-License-Identifier: Apache-2.0
// Moves blocks of pixels into channels and back: space_to_depth, depth_to_space.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct BlockAttrs {  // backward: head gradient
  int32_t block_size;
};

}  // namespace cohort
