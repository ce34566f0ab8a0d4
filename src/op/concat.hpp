// SPDX-License-Identifier: Apache-2.0
// Joins arrays along one axis.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets the head gradient and gives the gradients of all inputs.
struct ConcatAttrs {
  int32_t dim;  // the axis; negative counts from the last
};

}  // namespace cohort
