// SPDX-License-Identifier: Apache-2.0
// Included by the files that instantiate the loops of pointwise_loops.hpp.
#pragma once

#include <algorithm>

#include "cpu/op/fast_range.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace pointwise {
inline namespace COHORT_MATH_VARIANT {

template <typename F, typename C, int kOperands>
struct Body {
  static void run(const C *a, [[maybe_unused]] const C *b, [[maybe_unused]] const C *c, C s, C t, C *out,
                  int64_t count) {
    if constexpr (Usual<F>::kHas && std::is_same_v<C, float>) {
      for (int64_t i = 0; i < count; i += kLookedAt) looked_at(a + i, s, out + i, std::min(kLookedAt, count - i));
    } else {
      all(a, b, c, s, t, out, count);
    }
  }

 private:
  static void looked_at(const float *a, float s, float *out, int64_t count) {
    uint32_t most = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, Usual<F>::rank(a[i], s));
    if (most > Usual<F>::kMost) return all(a, nullptr, nullptr, s, 0.0f, out, count);
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = Usual<F>::usual(a[i], s);
  }

  static void all(const C *a, [[maybe_unused]] const C *b, [[maybe_unused]] const C *c, C s, C t, C *out,
                  int64_t count) {
    // Every iteration reads and writes its own elements only, also where out is one of the operands.
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (kOperands == 1) {
        out[i] = F::template of<C>(a[i], C(0), C(0), s, t);
      } else if constexpr (kOperands == 2) {
        out[i] = F::template of<C>(a[i], b[i], C(0), s, t);
      } else {
        out[i] = F::template of<C>(a[i], b[i], c[i], s, t);
      }
    }
  }
};

}  // namespace COHORT_MATH_VARIANT
}  // namespace pointwise

// The float loops for processors with AVX2 and FMA or with AVX-512, or null: pointwise_fused_multiply_cpu.cc.
PointwiseLoop<float> fused_multiply_loop(PointwiseCode code);

}  // namespace cohort
