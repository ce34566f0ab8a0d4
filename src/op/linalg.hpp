// SPDX-License-Identifier: Apache-2.0
// Linear algebra on the matrices in the last two axes of arrays. All axes before them count matrices.
#pragma once

#include "op/op.hpp"

namespace cohort {

// gemm: alpha op(A) op(B) + beta C; gemm2: without C. Rows of matrices lie on `axis`, columns on the last one.
struct LinalgGemmAttrs {
  bool transpose_a, transpose_b;
  double alpha, beta;
  int32_t axis;
  bool adds;  // there is a C
};

// trmm: alpha op(A) B, trsm: alpha op(A)^-1 B, with A a triangle; rightside: A stands right of B.
struct LinalgTriangleAttrs {
  bool transpose, rightside, lower;
  double alpha;
};

// syrk: alpha A A^T, or alpha A^T A.
struct LinalgSyrkAttrs {
  bool transpose;
  double alpha;
};

// extractdiag, makediag, extracttrian, maketrian. A triangle is the one below an offset below 0 or above one above 0;
// `lower` decides at 0.
struct LinalgDiagonalAttrs {
  int32_t offset;
  bool lower;
};

}  // namespace cohort
