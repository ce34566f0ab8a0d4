// SPDX-License-Identifier: Apache-2.0
// Random numbers. Parameters of the distribution are attributes (_random_NAME; _random_NAME_like takes shape and type
// from an array) or arrays (_sample_NAME, with a number of draws per element); and _random_randint.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct DrawAttrs {
  float a, b;  // the parameters, named as in random_math.hpp
  int32_t k;   // for negative_binomial, instead of a
  std::optional<Tuple> shape;
  Dtype dtype;
};

struct RandintAttrs {
  int64_t low, high;  // low <= number < high
  std::optional<Tuple> shape;
  Dtype dtype;
};

}  // namespace cohort
