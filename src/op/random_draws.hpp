// SPDX-License-Identifier: Apache-2.0
// Random numbers of a distribution whose parameters are attributes (_random_NAME, and _random_NAME_like for the shape
// and type of an array) or arrays (_sample_NAME, so many numbers for each of their elements); _random_randint.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct DrawAttrs {
  float a, b;  // the parameters, as the functor of random_math.hpp names them
  int32_t k;   // in place of a for negative_binomial
  std::optional<Tuple> shape;
  Dtype dtype;
};

struct RandintAttrs {
  int64_t low, high;  // low <= number < high
  std::optional<Tuple> shape;
  Dtype dtype;
};

}  // namespace cohort
