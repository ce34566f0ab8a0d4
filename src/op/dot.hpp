// SPDX-License-Identifier: Apache-2.0
// Matrix products: dot, batch_dot.
#pragma once

#include "op/op.hpp"

namespace cohort {

// dot sums over the last axis of lhs and the first of rhs; with transpose_a over the first axis of lhs, with
// transpose_b over the last of rhs. batch_dot multiplies the matrices in the last two axes. Backward: head gradient,
// lhs, rhs.
struct DotAttrs {
  bool transpose_a, transpose_b;
};

// A product as `batch` matrix products of (m, k) by (k, n).
struct DotExtent {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};
DotExtent dot_extent(const DotAttrs &a, const Shape &lhs, const Shape &rhs, bool batched);

}  // namespace cohort
