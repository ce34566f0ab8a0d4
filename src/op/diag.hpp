// SPDX-License-Identifier: Apache-2.0
// diag: the diagonal of an array, or an array with a given diagonal.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct DiagAttrs {  // backward: head gradient
  int32_t k;        // positive: above the main diagonal
  int32_t axis1, axis2;
};

// The diagonal of an array of at least two axes. `rest` lists its other axes in order.
struct DiagonalRange {
  int axis1, axis2;
  std::vector<int> rest;
  int64_t row, column, length;  // start along axis1 and axis2, and number of elements
};
DiagonalRange diagonal_of(const DiagAttrs &a, const Shape &matrix);

}  // namespace cohort
