// SPDX-License-Identifier: Apache-2.0
// Random choices: of a class by probabilities (_sample_multinomial), of an order (_shuffle), of different classes by
// rank (_sample_unique_zipfian).
#pragma once

#include "op/op.hpp"

namespace cohort {

// Backward inputs: head gradients of both outputs, data, output 0.
struct MultinomialAttrs {
  Tuple shape;  // so many numbers for each row of probabilities
  bool get_prob;
  Dtype dtype;
};

struct ZipfianAttrs {
  int32_t range_max;
  std::optional<Tuple> shape;
};

}  // namespace cohort
