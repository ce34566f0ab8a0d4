// SPDX-License-Identifier: Apache-2.0
// Selects rows of weight by the indices in data; an index out of range selects the nearest row.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets the head gradient and data, and gives the gradient of weight.
struct EmbeddingAttrs {
  int32_t input_dim, output_dim;  // shape of weight
  Dtype dtype;                    // of weight and output, if neither has a type
};

}  // namespace cohort
