// SPDX-License-Identifier: Apache-2.0
// Point-wise operators that need more than the functors of pointwise_math.hpp: a polynomial with three coefficients,
// and one that depends on the shape.
#pragma once

#include "op/op.hpp"

namespace cohort {

// a x^2 + b x + c
struct QuadraticAttrs {
  float a, b, c;
};

}  // namespace cohort
