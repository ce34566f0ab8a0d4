// SPDX-License-Identifier: Apache-2.0
#define COHORT_FUSED_MULTIPLY 1

#include <algorithm>

#include "cpu/op/lane_reduce.hpp"
#include "cpu/op/softmax_rows.hpp"
#include "cpu/simd.hpp"
#include "op/float_math.hpp"

namespace cohort {
namespace {

#ifdef COHORT_SIMD_VERSIONS
struct UsualRow {
  static bool run(const float *x, float *y, int64_t cols, float *largest) {
    constexpr int kLanes = kShortestUsualRow;
    // Differences of two such numbers have powers in the common range.
    constexpr uint32_t kMost = pointwise::kUsualExpBits - (uint32_t(1) << 23);
    float tops[kLanes];
    uint32_t magnitudes[kLanes];
    for (int k = 0; k < kLanes; ++k) {
      tops[k] = x[k];
      magnitudes[k] = pointwise::magnitude_bits(x[k]);
    }
    const JoinLarger larger;
    int64_t i = kLanes;
    for (; i + kLanes <= cols; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) {
        larger(tops[k], x[i + k]);
        larger(magnitudes[k], pointwise::magnitude_bits(x[i + k]));
      }
    }
    float top = join_lanes(tops, larger);
    uint32_t magnitude = join_lanes(magnitudes, larger);
    for (; i < cols; ++i) {
      larger(top, x[i]);
      larger(magnitude, pointwise::magnitude_bits(x[i]));
    }
    *largest = top;
    if (magnitude > kMost) return false;
    float sums[kLanes] = {};
    for (i = 0; i + kLanes <= cols; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) {
        const float power = pointwise::usual_exp_of(x[i + k] - top);
        y[i + k] = power;
        sums[k] += power;
      }
    }
    float sum = join_lanes(sums, JoinSum());
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t j = i; j < cols; ++j) y[j] = pointwise::usual_exp_of(x[j] - top);
    for (; i < cols; ++i) sum += y[i];
    const float scale = 1.0f / sum;
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < cols; ++j) y[j] *= scale;
    return true;
  }
};
#endif

}  // namespace

UsualSoftmaxRow usual_softmax_row() {
#ifdef COHORT_SIMD_VERSIONS
  if (simd_level() != Simd::kBase) return best_version<UsualRow>();
#endif
  return nullptr;
}

}  // namespace cohort
