// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/gemm.hpp"

#include <dnnl.h>

#include <algorithm>

#include "base/error.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace {

// to += x * scale
struct Axpy {
  static void run(const double *x, double scale, double *to, int64_t count) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) to[i] += x[i] * scale;
  }
};

constexpr int64_t kBlock = 64;

}  // namespace

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
          float beta, float *c) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) std::fill(c, c + m * n, 0.0f);
    return;
  }
  const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a,
                                          transpose_a ? m : k, b, transpose_b ? k : n, beta, c, n);
  if (status != dnnl_success) throw Error(Code::kExecution, text("dnnl_sgemm failed with status ", int(status)));
}

// Blocks of rows of b, transposed into place where they lie otherwise, times single elements of a.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double *a, const double *b,
          double beta, double *c) {
  static const auto axpy = best_version<Axpy>();
  if (beta == 0) {
    std::fill(c, c + m * n, 0.0);
  } else if (beta != 1) {
    for (int64_t i = 0; i < m * n; ++i) c[i] *= beta;
  }
  double turned[kBlock];
  for (int64_t k0 = 0; k0 < k; k0 += kBlock) {
    const int64_t k1 = std::min(k0 + kBlock, k);
    for (int64_t n0 = 0; n0 < n; n0 += kBlock) {
      const int64_t width = std::min(kBlock, n - n0);
      for (int64_t p = k0; p < k1; ++p) {
        const double *row = b + p * n + n0;
        if (transpose_b) {
          for (int64_t j = 0; j < width; ++j) turned[j] = b[(n0 + j) * k + p];
          row = turned;
        }
        for (int64_t i = 0; i < m; ++i) axpy(row, transpose_a ? a[p * m + i] : a[i * k + p], c + i * n + n0, width);
      }
    }
  }
}

}  // namespace cohort
