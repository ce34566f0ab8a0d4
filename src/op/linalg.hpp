// SPDX-License-Identifier: Apache-2.0
// Linear algebra on the matrices in the last two axes of arrays; all axes before them are batch axes.
#pragma once

#include "op/op.hpp"

namespace cohort {

// gemm: alpha op(A) op(B) + beta C; gemm2: without C. Rows of matrices lie on `axis`, columns on the last one.
struct LinalgGemmAttrs {
  bool transpose_a, transpose_b;
  double alpha, beta;
  int32_t axis;
  bool adds;  // true: gemm, with C
};

// trmm: alpha op(A) B, trsm: alpha op(A)^-1 B, with triangular A; rightside: A is to the right of B.
struct LinalgTriangleAttrs {
  bool transpose, rightside, lower;
  double alpha;
};

// syrk: alpha A A^T, or alpha A^T A.
struct LinalgSyrkAttrs {
  bool transpose;
  double alpha;
};

// extractdiag, makediag, extracttrian, maketrian. A negative offset selects the triangle below it, a positive one the
// triangle above it; at 0, `lower` decides.
struct LinalgDiagonalAttrs {
  int32_t offset;
  bool lower;
};

}  // namespace cohort
