// SPDX-License-Identifier: Apache-2.0
// Log densities and their derivatives, one functor each, for the kernels of every backend.
#pragma once

#include <cmath>

#include "op/float_math.hpp"

namespace cohort {
namespace pdf {

// log_of(x, p): the log density at x with parameters p. slopes(x, p, dx, dp): its derivatives by x and p.

struct Uniform {  // as in MXNet, without a check that x is inside the interval
  static constexpr int kParameters = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C log_of(C, const C *p) {
    return -std::log(p[1] - p[0]);
  }
  template <typename C>
  COHORT_HOST_DEVICE static void slopes(C, const C *p, C *dx, C *dp) {
    *dx = 0;
    dp[0] = 1 / (p[1] - p[0]);
    dp[1] = -dp[0];
  }
};

struct Normal {
  static constexpr int kParameters = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C log_of(C x, const C *p) {
    const C z = (x - p[0]) / p[1];
    return C(-0.5) * z * z - std::log(p[1]) - C(0.91893853320467274);
  }
  template <typename C>
  COHORT_HOST_DEVICE static void slopes(C x, const C *p, C *dx, C *dp) {
    const C z = (x - p[0]) / p[1];
    *dx = -z / p[1];
    dp[0] = z / p[1];
    dp[1] = (z * z - 1) / p[1];
  }
};

struct Gamma {  // parameters: shape and rate
  static constexpr int kParameters = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C log_of(C x, const C *p) {
    return p[0] * std::log(p[1]) + (p[0] - 1) * std::log(x) - p[1] * x - pointwise::gammaln_of(p[0]);
  }
  template <typename C>
  COHORT_HOST_DEVICE static void slopes(C x, const C *p, C *dx, C *dp) {
    *dx = (p[0] - 1) / x - p[1];
    dp[0] = std::log(p[1]) + std::log(x) - pointwise::digamma_of(p[0]);
    dp[1] = p[0] / p[1] - x;
  }
};

struct Exponential {
  static constexpr int kParameters = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C log_of(C x, const C *p) {
    return std::log(p[0]) - p[0] * x;
  }
  template <typename C>
  COHORT_HOST_DEVICE static void slopes(C x, const C *p, C *dx, C *dp) {
    *dx = -p[0];
    dp[0] = 1 / p[0] - x;
  }
};

struct Poisson {
  static constexpr int kParameters = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C log_of(C x, const C *p) {
    return x * std::log(p[0]) - pointwise::gammaln_of(x + 1) - p[0];
  }
  template <typename C>
  COHORT_HOST_DEVICE static void slopes(C x, const C *p, C *dx, C *dp) {
    *dx = 0;
    dp[0] = x / p[0] - 1;
  }
};

struct NegativeBinomial {  // parameters: number of successes and their probability
  static constexpr int kParameters = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C log_of(C x, const C *p) {
    return pointwise::gammaln_of(x + p[0]) - pointwise::gammaln_of(x + 1) - pointwise::gammaln_of(p[0]) +
           p[0] * std::log(p[1]) + x * std::log(1 - p[1]);
  }
  template <typename C>
  COHORT_HOST_DEVICE static void slopes(C x, const C *p, C *dx, C *dp) {
    *dx = 0;
    dp[0] = pointwise::digamma_of(x + p[0]) - pointwise::digamma_of(p[0]) + std::log(p[1]);
    dp[1] = p[0] / p[1] - x / (1 - p[1]);
  }
};

struct GeneralizedNegativeBinomial {  // parameters: mean and dispersion
  static constexpr int kParameters = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C log_of(C x, const C *p) {
    const C q[2] = {1 / p[1], 1 / (p[0] * p[1] + 1)};
    return NegativeBinomial::log_of(x, q);
  }
  template <typename C>
  COHORT_HOST_DEVICE static void slopes(C x, const C *p, C *dx, C *dp) {
    const C q[2] = {1 / p[1], 1 / (p[0] * p[1] + 1)};
    C dq[2];
    NegativeBinomial::slopes(x, q, dx, dq);
    dp[0] = -dq[1] * p[1] * q[1] * q[1];
    dp[1] = -dq[0] * q[0] * q[0] - dq[1] * p[0] * q[1] * q[1];
  }
};

}  // namespace pdf
}  // namespace cohort
