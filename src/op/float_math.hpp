// SPDX-License-Identifier: Apache-2.0
// Elementary functions for point-wise operators. The float forms are written without branches so that a loop over them
// vectorises; each is accurate to a few units in the last place. The double forms are the standard library's. Compiled
// by nvcc, too, where the float forms are the device's own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/dtype.hpp"

// COHORT_FUSED_MULTIPLY is defined by files whose loops run on processors with a fused multiply-add only.
#ifdef COHORT_FUSED_MULTIPLY
#define COHORT_MATH_VARIANT fused_multiply
#else
#define COHORT_MATH_VARIANT plain_multiply
#endif

namespace cohort {
namespace pointwise {
inline namespace COHORT_MATH_VARIANT {

// a * b + c. Kernels are compiled without contraction: a compiler fuses differently in the vector part of a loop and in
// the rest of it, and results would depend on where a block ends.
COHORT_HOST_DEVICE inline float multiply_add(float a, float b, float c) {
#if defined(COHORT_FUSED_MULTIPLY) || defined(__CUDA_ARCH__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

COHORT_HOST_DEVICE inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

COHORT_HOST_DEVICE inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

// x = n ln 2 + r with |r| <= ln 2 / 2; e^r = 1 + r + r^2 p. Sums with kRound leave n in the lowest bits of the sum.
struct ReducedExp {
  uint32_t n;  // modulo 2^22
  float r, r2, p;

  COHORT_HOST_DEVICE float power() const { return multiply_add(multiply_add(p, r, 1.0f), r, 1.0f); }
  COHORT_HOST_DEVICE float power_minus_1() const { return multiply_add(p, r2, r); }
};

COHORT_HOST_DEVICE inline ReducedExp reduce_exp(float x) {
  const float kRound = 12582912.0f;  // 1.5 * 2^23
  const float shifted = multiply_add(x, 1.44269504088896341f, kRound);
  const float n = shifted - kRound;
  const float r = multiply_add(-n, 1.42860682031e-6f, multiply_add(-n, 0.693145751953125f, x));
  // By pairs: products of a chain wait for each other, and a processor looks ahead over few numbers only.
  const float r2 = r * r;
  float p = multiply_add(1.392768463e-03f, r2, multiply_add(8.364380337e-03f, r, 4.166654497e-02f));
  p = multiply_add(p, r2, multiply_add(1.666657031e-01f, r, 0.5f));
  return {bits_of(shifted), r, r2, p};
}

// 2^n, n modulo 2^9 from -126 to 127.
COHORT_HOST_DEVICE inline float power_of_two(uint32_t n) { return float_of((n << 23) + 0x3f800000u); }

// Where neither e^x nor e^-x is subnormal or infinite: usual_exp_of(x) is exp_of(x) with less work.
constexpr uint32_t kUsualExpBits = 0x42ae0000u;  // of 87.0f
COHORT_HOST_DEVICE inline uint32_t magnitude_bits(float x) { return bits_of(x) & 0x7fffffffu; }
COHORT_HOST_DEVICE inline float usual_exp_of(float x) {
  const ReducedExp e = reduce_exp(x);
  return float_of(bits_of(e.power()) + (e.n << 23));
}

COHORT_HOST_DEVICE inline float exp_of(float x) {
#ifdef __CUDA_ARCH__
  return expf(x);
#else
  // Beyond these e^x is 0 or infinite. Floats of one sign are ordered as their bits are: two instructions.
  const uint32_t above = std::min(bits_of(x), bits_of(-104.0f));
  const ReducedExp e = reduce_exp(float_of(uint32_t(std::min(int32_t(above), int32_t(bits_of(89.0f))))));
  // Two factors, as their product alone may be out of range. Bits of n that are shifted out are not its own.
  const uint32_t half = uint32_t(int32_t(e.n << 9) >> 10);
  const float result = e.power() * power_of_two(half) * power_of_two(e.n - half);
  return x == x ? result : x;  // a NaN passes
#endif
}
COHORT_HOST_DEVICE inline double exp_of(double x) { return std::exp(x); }

// e^x - 1, exact for small x, with the sign of a zero; infinite beyond 89, -1 below -18. By halves, as 2^128 is no
// float.
COHORT_HOST_DEVICE inline float expm1_of(float x) {
#ifdef __CUDA_ARCH__
  return expm1f(x);
#else
  const float above = x < -18.0f ? -18.0f : x;
  const ReducedExp e = reduce_exp(above > 89.0f ? 89.0f : above);
  const float half = power_of_two(e.n - 1);
  const float result = 2.0f * multiply_add(e.power_minus_1(), half, half - 0.5f);
  return x == 0.0f ? x : result;
#endif
}
COHORT_HOST_DEVICE inline double expm1_of(double x) { return std::expm1(x); }

// tanh |x| = t / (t + 2) with t = e^(2|x|) - 1, which keeps small x exact. Beyond 10 it is 1.
constexpr uint32_t kUsualTanhBits = 0x41200000u;  // of 10.0f
COHORT_HOST_DEVICE inline float usual_tanh_of(float magnitude, float sign) {
  const ReducedExp e = reduce_exp(magnitude + magnitude);
  const float scale = power_of_two(e.n);
  const float t = multiply_add(e.power_minus_1(), scale, scale - 1.0f);
  return float_of(bits_of(t / (t + 2.0f)) | (bits_of(sign) & 0x80000000u));
}

COHORT_HOST_DEVICE inline float tanh_of(float x) {
#ifdef __CUDA_ARCH__
  return tanhf(x);
#else
  const float magnitude = std::fabs(x);
  return usual_tanh_of(magnitude > 10.0f ? 10.0f : magnitude, x);
#endif
}
COHORT_HOST_DEVICE inline double tanh_of(double x) { return std::tanh(x); }

COHORT_HOST_DEVICE inline float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }
COHORT_HOST_DEVICE inline double sigmoid_of(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// x = 2^e m with sqrt(1/2) <= m < sqrt(2); log x = e ln 2 + log m. Of a normal, positive, finite x times 2^-lifted.
constexpr uint32_t kSmallestNormalBits = 0x00800000u, kNormalBits = 0x7f000000u;  // the first one; how many there are
COHORT_HOST_DEVICE inline float usual_log_of(float x, float lifted) {
  const uint32_t shifted = bits_of(x) - 0x3f3504f3u;  // sqrt(1/2)
  const float e = float(int32_t(shifted) >> 23) - lifted;
  const float f = float_of((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float f2 = f * f;
  float p = multiply_add(-7.902743667e-02f, f, 1.262231916e-01f);
  p = multiply_add(p, f2, multiply_add(-1.299818307e-01f, f, 1.421449631e-01f));
  p = multiply_add(p, f2, multiply_add(-1.664128155e-01f, f, 2.000104487e-01f));
  p = multiply_add(p, f2, multiply_add(-2.500030696e-01f, f, 3.333333135e-01f));
  p = multiply_add(p, f, -0.5f);
  const float low = f + multiply_add(p, f2, e * 1.42860682031e-6f);
  return multiply_add(e, 0.693145751953125f, low);
}

COHORT_HOST_DEVICE inline float log_of(float x) {
#ifdef __CUDA_ARCH__
  return logf(x);
#else
  const bool tiny = x < 1.17549435e-38f;
  const float finite = usual_log_of(x * (tiny ? 8388608.0f : 1.0f), tiny ? 23.0f : 0.0f);
  const float infinity = std::numeric_limits<float>::infinity();
  const float special = x == 0.0f ? -infinity : x > 0.0f ? infinity : std::numeric_limits<float>::quiet_NaN();
  return bits_of(x) - 1u < 0x7f7fffffu ? finite : special;  // positive and finite
#endif
}
COHORT_HOST_DEVICE inline double log_of(double x) { return std::log(x); }

// log(1 + x): the correction term undoes the rounding of 1 + x.
COHORT_HOST_DEVICE inline float log1p_of(float x) {
#ifdef __CUDA_ARCH__
  return log1pf(x);
#else
  const float u = 1.0f + x;
  const float correction = (x - (u - 1.0f)) / u;
  const float infinity = std::numeric_limits<float>::infinity();
  const float sum = log_of(u) + correction;
  return u == infinity || u == 0.0f ? log_of(u) : sum;
#endif
}
COHORT_HOST_DEVICE inline double log1p_of(double x) { return std::log1p(x); }

// An odd polynomial below 1, 1 - e^P(|x|) above.
COHORT_HOST_DEVICE inline float erf_of(float x) {
#ifdef __CUDA_ARCH__
  return erff(x);
#else
  const float z = x * x;
  float small = 7.875874871e-05f;
  small = multiply_add(small, z, -8.016864303e-04f);
  small = multiply_add(small, z, 5.189087242e-03f);
  small = multiply_add(small, z, -2.685421146e-02f);
  small = multiply_add(small, z, 1.128359437e-01f);
  small = multiply_add(small, z, -3.761262596e-01f);
  small = multiply_add(small, z, 1.128379107e+00f);
  const float magnitude = std::fabs(x), a = magnitude > 4.0f ? 4.0f : magnitude;
  float p = 1.614896291e-06f;
  p = multiply_add(p, a, -4.563089169e-05f);
  p = multiply_add(p, a, 5.933143548e-04f);
  p = multiply_add(p, a, -4.743753932e-03f);
  p = multiply_add(p, a, 2.637756430e-02f);
  p = multiply_add(p, a, -1.100058183e-01f);
  p = multiply_add(p, a, -6.319025755e-01f);
  p = multiply_add(p, a, -1.130189896e+00f);
  p = multiply_add(p, a, 3.096755827e-04f);
  const float large = std::copysign(1.0f - exp_of(p), x);
  return magnitude < 1.0f ? small * x : large;
#endif
}
COHORT_HOST_DEVICE inline double erf_of(double x) { return std::erf(x); }

// d log(gamma(x)) / dx: recurrence up to 6, then the asymptotic series; reflection below 0.
template <typename C>
COHORT_HOST_DEVICE inline C digamma_of(C argument) {
  const double pi = 3.14159265358979323846;
  double x = double(argument), result = 0;
  if (x <= 0) {
    if (x == std::floor(x)) return C(NAN);  // a pole
    result = -pi / std::tan(pi * x);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  result +=
      std::log(x) - 0.5 / x -
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760))))));
  return C(result);
}

template <typename C>
COHORT_HOST_DEVICE inline C gammaln_of(C x) {
#ifdef __CUDA_ARCH__
  return C(lgamma(double(x)));
#else
  int sign;  // std::lgamma writes a global instead
  return C(::lgamma_r(double(x), &sign));
#endif
}

// Solves erf(y) = x: a start that is right to some percent, then Halley's steps, on erfc where erf is close to 1.
template <typename C>
COHORT_HOST_DEVICE inline C erfinv_of(C argument) {
  const double x = double(argument), magnitude = std::fabs(x);
  if (!(magnitude < 1)) {
    return magnitude == 1 ? C(x * INFINITY) : C(NAN);
  }
  const double l = std::log1p(-magnitude * magnitude), h = 4.3307467508 + 0.5 * l;  // 2 / (pi 0.147)
  double y = std::sqrt(std::sqrt(h * h - l / 0.147) - h);
  for (int step = 0; step < 3; ++step) {
    const double error = magnitude < 0.5 ? std::erf(y) - magnitude : (1 - magnitude) - std::erfc(y);
    const double newton = error / (1.12837916709551257390 * std::exp(-y * y));
    y -= newton / (1 + y * newton);
  }
  return C(std::copysign(y, x));
}

}  // namespace COHORT_MATH_VARIANT
}  // namespace pointwise
}  // namespace cohort
