// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/gemm.hpp"

#include <dnnl.h>

#include <algorithm>

#include "base/error.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace {

constexpr int64_t kWidth = 16;  // columns of a panel of b, whose sums stay in registers
constexpr int64_t kDepth = 128;
constexpr int64_t kRows = 8;  // rows of c at once

using Eight [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;

// c (m, width) += a (m, depth) times a panel (depth, kWidth), with sums in the order of the depth.
struct TimesPanel {
  static void run(const double *a, int64_t row_step, int64_t depth_step, const double *panel, int64_t depth, int64_t m,
                  int64_t width, int64_t c_step, double *c) {
    int64_t i = 0;
    for (; i + kRows <= m; i += kRows) {
      const double *const from = a + i * row_step;
      double *const to = c + i * c_step;
      if (width == kWidth) {
        rows<kRows, true>(from, row_step, depth_step, panel, depth, width, c_step, to);
      } else {
        rows<kRows, false>(from, row_step, depth_step, panel, depth, width, c_step, to);
      }
    }
    for (; i < m; ++i) {
      rows<1, false>(a + i * row_step, row_step, depth_step, panel, depth, width, c_step, c + i * c_step);
    }
  }

 private:
  template <int64_t kCount, bool kWhole>
  static void rows(const double *a, int64_t row_step, int64_t depth_step, const double *panel, int64_t depth,
                   int64_t width, int64_t c_step, double *c) {
    double tile[kWhole ? 1 : kCount][kWidth] = {};  // for results narrower than a panel
    for (int64_t r = 0; r < kCount && !kWhole; ++r) std::copy_n(c + r * c_step, width, tile[r]);
    double *const lines = kWhole ? c : tile[0];
    const int64_t step = kWhole ? c_step : kWidth;
    Eight sums[kCount][2];
    for (int64_t r = 0; r < kCount; ++r) {
      for (int64_t k = 0; k < 2; ++k) sums[r][k] = *reinterpret_cast<const Eight *>(lines + r * step + k * 8);
    }
    for (int64_t p = 0; p < depth; ++p) {
      const Eight *const line = reinterpret_cast<const Eight *>(panel + p * kWidth);
      for (int64_t r = 0; r < kCount; ++r) {
        const double factor = a[r * row_step + p * depth_step];
        sums[r][0] += line[0] * factor;
        sums[r][1] += line[1] * factor;
      }
    }
    for (int64_t r = 0; r < kCount; ++r) {
      for (int64_t k = 0; k < 2; ++k) *reinterpret_cast<Eight *>(lines + r * step + k * 8) = sums[r][k];
    }
    for (int64_t r = 0; r < kCount && !kWhole; ++r) std::copy_n(tile[r], width, c + r * c_step);
  }
};

struct DoubleGemm {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const double *a;
  int64_t a_step;
  const double *b;
  int64_t b_step;
  double beta;
  double *c;
  int64_t c_step;

  void columns(int64_t begin, int64_t end) const {
    static const auto times_panel = best_version<TimesPanel>();
    for (int64_t i = 0; i < m && beta != 1; ++i) {
      for (int64_t j = begin; j < end; ++j) c[i * c_step + j] = beta == 0 ? 0.0 : c[i * c_step + j] * beta;
    }
    const int64_t row_step = transpose_a ? 1 : a_step, depth_step = transpose_a ? a_step : 1;
    alignas(64) double panel[kDepth * kWidth];
    for (int64_t first = begin; first < end; first += kWidth) {
      const int64_t width = std::min(kWidth, end - first);
      for (int64_t start = 0; start < k; start += kDepth) {
        const int64_t depth = std::min(kDepth, k - start);
        if (width < kWidth) std::fill_n(panel, depth * kWidth, 0.0);
        for (int64_t j = 0; transpose_b && j < width; ++j) {
          for (int64_t p = 0; p < depth; ++p) panel[p * kWidth + j] = b[(first + j) * b_step + start + p];
        }
        for (int64_t p = 0; !transpose_b && p < depth; ++p) {
          std::copy_n(b + (start + p) * b_step + first, width, panel + p * kWidth);
        }
        times_panel(a + start * depth_step, row_step, depth_step, panel, depth, m, width, c_step, c + first);
      }
    }
  }
};

}  // namespace

Lane product_lane() { return {omp_in_parallel() ? 1 : omp_get_max_threads(), nullptr}; }

void gemm(const Lane &, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float *a,
          int64_t a_step, const float *b, int64_t b_step, float beta, float *c, int64_t c_step) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; i < m && beta == 0; ++i) std::fill_n(c + i * c_step, n, 0.0f);
    return;
  }
  const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, a_step, b,
                                          b_step, beta, c, c_step);
  if (status != dnnl_success) throw Error(Code::kExecution, text("dnnl_sgemm failed with status ", int(status)));
}

void gemm(const Lane &lane, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const double *a,
          int64_t a_step, const double *b, int64_t b_step, double beta, double *c, int64_t c_step) {
  const DoubleGemm product{transpose_a, transpose_b, m, n, k, a, a_step, b, b_step, beta, c, c_step};
  const int64_t panels = (n + kWidth - 1) / kWidth, work = m * k * kWidth;
  parallel_for(lane, panels, 1 + 65536 / (work + 1),
               [&](int64_t begin, int64_t end) { product.columns(begin * kWidth, std::min(n, end * kWidth)); });
}

}  // namespace cohort
