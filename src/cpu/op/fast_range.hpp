// SPDX-License-Identifier: Apache-2.0
// Functors with a shorter formula for numbers in a common range: no NaN, infinity, subnormal, or result out of range.
// Loops test a block of numbers, and use the short formula if it applies to all of them: it gives the same bits as
// the long one, so that no result depends on its neighbours.
#pragma once

#include <cstdint>

#include "op/pointwise_math.hpp"

namespace cohort {
namespace pointwise {
inline namespace COHORT_MATH_VARIANT {

// usual(x, s) equals F::of(x, s) wherever rank(x, s) <= kMost.
template <typename F>
struct Usual {
  static constexpr bool kHas = false;
};
struct UsualExp {
  static constexpr bool kHas = true;
  static constexpr uint32_t kMost = kUsualExpBits;
  static uint32_t rank(float x, float) { return magnitude_bits(x); }
  static float usual(float x, float) { return usual_exp_of(x); }
};
template <>
struct Usual<Exp> : UsualExp {};
template <>
struct Usual<ExpLessScalar> : UsualExp {
  static uint32_t rank(float x, float s) { return magnitude_bits(x - s); }
  static float usual(float x, float s) { return usual_exp_of(x - s); }
};
template <>
struct Usual<Sigmoid> : UsualExp {
  static float usual(float x, float) { return 1.0f / (1.0f + usual_exp_of(-x)); }
};
template <>
struct Usual<Tanh> : UsualExp {
  static constexpr uint32_t kMost = kUsualTanhBits;
  static float usual(float x, float) { return usual_tanh_of(std::fabs(x), x); }
};
template <>
struct Usual<Log> {
  static constexpr bool kHas = true;
  static constexpr uint32_t kMost = kNormalBits - 1;
  static uint32_t rank(float x, float) { return bits_of(x) - kSmallestNormalBits; }
  static float usual(float x, float) { return usual_log_of(x, 0.0f); }
};

constexpr int64_t kLookedAt = 512;  // numbers tested at a time; they stay in the L1 cache

}  // namespace COHORT_MATH_VARIANT
}  // namespace pointwise
}  // namespace cohort
