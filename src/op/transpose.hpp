// SPDX-License-Identifier: Apache-2.0
// Permutes axes: SwapAxis and transpose.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct SwapAxisAttrs {
  int32_t dim1, dim2;  // negative counts from the last
};

struct TransposeAttrs {
  Tuple axes;  // axis i of the output is axis axes[i] of data; empty: reverse order
};

// The axes of data in the order of the output, each in [0, rank). The backward kernels get the head gradient and apply
// the inverse.
std::vector<int> permutation(const SwapAxisAttrs &a, int rank);
std::vector<int> permutation(const TransposeAttrs &a, int rank);

}  // namespace cohort
