// SPDX-License-Identifier: Apache-2.0
// Returns the scores; its gradient is that of the hinge loss, linear or squared.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets label and output.
struct SVMOutputAttrs {
  float margin;
  float regularization_coefficient;
  bool use_linear;  // true: L1 hinge loss; false: squared
};

}  // namespace cohort
