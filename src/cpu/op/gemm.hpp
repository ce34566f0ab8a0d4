// SPDX-License-Identifier: Apache-2.0
// Products of row-major matrices for kernels that are no oneDNN layer.
#pragma once

#include <cstdint>

#include "device/kernel.hpp"

namespace cohort {

// c (m, n) = op(a) (m, k) * op(b) (k, n) + beta c, where op transposes if asked to: a is then (k, m), b (n, k). All
// dense. float goes to oneDNN and uses the threads of the queue; double runs on the calling thread or, with a lane, on
// those of the lane. Every element is one sum in a fixed order, however many threads there are.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
          float beta, float *c);
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double *a, const double *b,
          double beta, double *c);
inline void gemm(const Lane &, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float *a,
                 const float *b, float beta, float *c) {
  gemm(transpose_a, transpose_b, m, n, k, a, b, beta, c);
}
void gemm(const Lane &lane, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double *a,
          const double *b, double beta, double *c);

}  // namespace cohort
