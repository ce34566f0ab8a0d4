// SPDX-License-Identifier: Apache-2.0
// Random choices: of classes by probability (_sample_multinomial), of a permutation (_shuffle), of distinct classes
// with a Zipfian distribution (_sample_unique_zipfian).
#pragma once

#include "op/op.hpp"

namespace cohort {

// Backward inputs: head gradients of both outputs, data, output 0.
struct MultinomialAttrs {
  Tuple shape;  // shape of the draws for each row of probabilities
  bool get_prob;
  Dtype dtype;
};

struct ZipfianAttrs {
  int32_t range_max;
  std::optional<Tuple> shape;
};

}  // namespace cohort
