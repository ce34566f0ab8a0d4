// SPDX-License-Identifier: Apache-2.0
// Products of row-major matrices, for kernels that are not oneDNN layers.
#pragma once

#include <cstdint>

#include "device/kernel.hpp"

namespace cohort {

// c (m, n) = op(a) (m, k) * op(b) (k, n) + beta c, where op transposes if asked to: a is then (k, m), b (n, k). Rows
// lie a_step, b_step and c_step elements apart. float goes to oneDNN and uses the threads of the queue; double uses
// those of the lane or, without one, of the queue. Inside a parallel loop both use the calling thread alone. Every
// element is one sum in a fixed order: of doubles whatever the number of threads, of floats for the same number, as
// oneDNN divides long sums among them.
void gemm(const Lane &lane, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float *a,
          int64_t a_step, const float *b, int64_t b_step, float beta, float *c, int64_t c_step);
void gemm(const Lane &lane, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double *a,
          int64_t a_step, const double *b, int64_t b_step, double beta, double *c, int64_t c_step);

Lane product_lane();  // for a product without a lane

template <typename C>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const C *a, int64_t a_step, const C *b,
          int64_t b_step, C beta, C *c, int64_t c_step) {
  gemm(product_lane(), transpose_a, transpose_b, m, n, k, a, a_step, b, b_step, beta, c, c_step);
}
// All matrices dense.
template <typename C>
void gemm(const Lane &lane, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const C *a, const C *b,
          C beta, C *c) {
  gemm(lane, transpose_a, transpose_b, m, n, k, a, transpose_a ? m : k, b, transpose_b ? k : n, beta, c, n);
}
template <typename C>
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const C *a, const C *b, C beta, C *c) {
  gemm(product_lane(), transpose_a, transpose_b, m, n, k, a, b, beta, c);
}

}  // namespace cohort
