// SPDX-License-Identifier: Apache-2.0
// Random number generators of all distributions, one functor each, for the kernels of every backend. Number i of a draw
// depends on seed, draw and i alone (base/random.hpp), so the work may be divided in any way.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/dtype.hpp"
#include "base/random.hpp"
#include "op/float_math.hpp"

namespace cohort {

// An unlimited supply of random bits for one element, independent of what other elements consume: blocks of the cipher
// starting at 2^20 times the element's index.
class Dice {
 public:
  COHORT_HOST_DEVICE Dice(uint64_t seed, uint64_t stream, uint64_t element)
      : seed_(seed), stream_(stream), next_(element << 20) {}
  COHORT_HOST_DEVICE uint64_t bits() {
    if (used_ == 4) {
      block_ = Philox::at(seed_, next_++, stream_);
      used_ = 0;
    }
    used_ += 2;
    return uint64_t(block_.word[used_ - 2]) << 32 | block_.word[used_ - 1];
  }
  // In (0, 1): an odd multiple of 2^-53.
  COHORT_HOST_DEVICE double unit() { return (double(bits() >> 12) + 0.5) * 2.220446049250313e-16; }
  COHORT_HOST_DEVICE double normal() {
    const double radius = std::sqrt(-2 * std::log(unit()));
    return radius * std::cos(6.283185307179586 * unit());
  }
  // Below `count`, which is at least 1.
  COHORT_HOST_DEVICE uint64_t below(uint64_t count) {
    return uint64_t((static_cast<unsigned __int128>(bits()) * count) >> 64);
  }

 private:
  const uint64_t seed_, stream_;
  uint64_t next_;
  Philox block_{};
  int used_ = 4;
};

// Uniform numbers in [0, 1) from one block: four floats or two doubles.
COHORT_HOST_DEVICE inline void units_of(const Philox &block, float *u) {
  for (int i = 0; i < 4; ++i) u[i] = uniform_of(block.word[i]);
}
COHORT_HOST_DEVICE inline void units_of(const Philox &block, double *u) {
  for (int i = 0; i < 2; ++i) {
    u[i] = double((uint64_t(block.word[2 * i]) << 32 | block.word[2 * i + 1]) >> 11) * 1.1102230246251565e-16;
  }
}
// Likewise, standard normal numbers.
COHORT_HOST_DEVICE inline void normals_of(const Philox &block, float *n) {
  normal_of(block.word[0], block.word[1], &n[0], &n[1]);
  normal_of(block.word[2], block.word[3], &n[2], &n[3]);
}
COHORT_HOST_DEVICE inline void normals_of(const Philox &block, double *n) {
  double u[2];
  units_of(block, u);
  const double radius = std::sqrt(-2 * std::log1p(-u[0])), angle = 6.283185307179586 * u[1];
  n[0] = radius * std::cos(angle);
  n[1] = radius * std::sin(angle);
}

namespace draw {

// The random input of a functor: a uniform number in [0, 1), a standard normal one, or any number of bits (Dice).
enum class RandomSource { kUnit, kNormal, kDice };

// fits(a, b): whether the parameters are valid. of(source, a, b): one number of the distribution.

struct Uniform {  // in [a, b)
  static constexpr RandomSource kSource = RandomSource::kUnit;
  COHORT_HOST_DEVICE static bool fits(double a, double b) { return a <= b && std::isfinite(b - a); }
  template <typename C>
  COHORT_HOST_DEVICE static C of(C u, C a, C b) {
    return a + (b - a) * u;
  }
};

struct Normal {  // with mean a and deviation b
  static constexpr RandomSource kSource = RandomSource::kNormal;
  COHORT_HOST_DEVICE static bool fits(double a, double b) { return std::isfinite(a) && b >= 0 && std::isfinite(b); }
  template <typename C>
  COHORT_HOST_DEVICE static C of(C n, C a, C b) {
    return a + b * n;
  }
};

struct Exponential {  // with mean 1 / a
  static constexpr RandomSource kSource = RandomSource::kUnit;
  COHORT_HOST_DEVICE static bool fits(double a, double) { return a > 0 && std::isfinite(a); }
  template <typename C>
  COHORT_HOST_DEVICE static C of(C u, C a, C) {
    return -std::log1p(-u) / a;
  }
};

// Shape a, scale b. Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; for a below 1, a power
// of a uniform number times a number for 1 + a.
struct Gamma {
  static constexpr RandomSource kSource = RandomSource::kDice;
  COHORT_HOST_DEVICE static bool fits(double a, double b) {
    return a > 0 && b > 0 && std::isfinite(a) && std::isfinite(b);
  }
  COHORT_HOST_DEVICE static double of(Dice &dice, double a, double b) {
    if (a < 1) b *= std::exp(std::log(dice.unit()) / a);
    const double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = dice.normal(), root = 1 + c * x;
      if (root <= 0) continue;
      const double v = root * root * root;
      if (std::log(dice.unit()) < 0.5 * x * x + d * (1 - v + std::log(v))) return d * v * b;
    }
  }
};

// Mean a. Below 10 by multiplying uniform numbers, above by Hörmann's transformed rejection with squeeze (PTRS, "The
// transformed rejection method for generating Poisson random variables", 1993); above 2^40, where a double cannot show
// the skew, a rounded normal number.
struct Poisson {
  static constexpr RandomSource kSource = RandomSource::kDice;
  COHORT_HOST_DEVICE static bool fits(double a, double) { return a >= 0 && std::isfinite(a); }
  COHORT_HOST_DEVICE static double of(Dice &dice, double a, double) {
    if (a < 10) {
      const double limit = std::exp(-a);
      double product = dice.unit(), count = 0;
      for (; product > limit; product *= dice.unit()) ++count;
      return count;
    }
    const double root = std::sqrt(a);
    if (a > 1099511627776.0) return std::floor(a + root * dice.normal() + 0.5);
    const double b = 0.931 + 2.53 * root, s = -0.059 + 0.02483 * b, log_a = std::log(a);
    const double log_inverse = std::log(1.1239 + 1.1328 / (b - 3.4)), accepted = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
      const double u = dice.unit() - 0.5, v = dice.unit(), us = 0.5 - std::fabs(u);
      const double count = std::floor((2 * s / us + b) * u + a + 0.43);
      if (us >= 0.07 && v <= accepted) return count;
      if (count < 0 || (us < 0.013 && v > us)) continue;
      const double log_probability = count * log_a - a - pointwise::gammaln_of(count + 1);
      if (std::log(v) + log_inverse - std::log(s / (us * us) + b) <= log_probability) return count;
    }
  }
};

// The number of failures before a successes with probability b each.
struct NegativeBinomial {
  static constexpr RandomSource kSource = RandomSource::kDice;
  COHORT_HOST_DEVICE static bool fits(double a, double b) { return a >= 0 && b > 0 && b <= 1 && std::isfinite(a); }
  COHORT_HOST_DEVICE static double of(Dice &dice, double a, double b) {
    if (a == 0 || b == 1) return 0;
    return Poisson::of(dice, Gamma::of(dice, a, (1 - b) / b), 0);
  }
};

// Likewise, with mean a and dispersion b: the variance is a + b a^2.
struct GeneralizedNegativeBinomial {
  static constexpr RandomSource kSource = RandomSource::kDice;
  COHORT_HOST_DEVICE static bool fits(double a, double b) {
    return a >= 0 && b >= 0 && std::isfinite(a) && std::isfinite(a * b);
  }
  COHORT_HOST_DEVICE static double of(Dice &dice, double a, double b) {
    if (a == 0) return 0;
    return Poisson::of(dice, b == 0 ? a : Gamma::of(dice, 1 / b, a * b), 0);
  }
};

// Calls fn(distribution, name used in operators) for each distribution.
template <typename Fn>
void for_each(Fn &&fn) {
  fn(Uniform(), "uniform");
  fn(Normal(), "normal");
  fn(Exponential(), "exponential");
  fn(Gamma(), "gamma");
  fn(Poisson(), "poisson");
  fn(NegativeBinomial(), "negative_binomial");
  fn(GeneralizedNegativeBinomial(), "generalized_negative_binomial");
}

// The number of distinct uniform values generated for a type, 0: no limit. With more bits, rounding would give the
// upper end of the interval.
inline float kept_values(Dtype dtype) { return dtype == Dtype::kFloat16 ? 2048 : dtype == Dtype::kBfloat16 ? 256 : 0; }

}  // namespace draw
}  // namespace cohort
