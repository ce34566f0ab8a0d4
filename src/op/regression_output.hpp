// SPDX-License-Identifier: Apache-2.0
// LinearRegressionOutput (y = x, gradient y - label), LogisticRegressionOutput (y = sigmoid(x), gradient y - label),
// MAERegressionOutput (y = x, gradient 1 where y > label, else -1); gradients times grad_scale / outputs per sample.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets label and output.
struct RegressionOutputAttrs {
  float grad_scale;
};

}  // namespace cohort
