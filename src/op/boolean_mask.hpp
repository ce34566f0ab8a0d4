// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op.hpp"

namespace cohort {

struct BooleanMaskAttrs {
  int32_t axis = 0;
};

}  // namespace cohort
