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

// Defined by files whose loops run only on processors with a fused multiply-add.
#ifdef COHORT_FUSED_MULTIPLY
#define COHORT_MATH_VARIANT fused_multiply
#else
#define COHORT_MATH_VARIANT plain_multiply
#endif

namespace cohort {
namespace pointwise {
inline namespace COHORT_MATH_VARIANT {

// a * b + c. Kernels are compiled without floating-point contraction, because a compiler would contract differently in
// the vector part and the remainder of a loop, and results would depend on where a block ends.
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

// x = n ln 2 + r with |r| <= ln 2 / 2; e^r = 1 + r + r^2 p. Adding kRound leaves n in the lowest bits of the sum.
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
  // Evaluates in pairs: a chain of dependent products stalls the processor, whose reorder window is small.
  const float r2 = r * r;
  float p = multiply_add(1.392768463e-03f, r2, multiply_add(8.364380337e-03f, r, 4.166654497e-02f));
  p = multiply_add(p, r2, multiply_add(1.666657031e-01f, r, 0.5f));
  return {bits_of(shifted), r, r2, p};
}

// 2^n, n modulo 2^9 from -126 to 127.
COHORT_HOST_DEVICE inline float power_of_two(uint32_t n) { return float_of((n << 23) + 0x3f800000u); }

// For |x| up to 87, where neither e^x nor e^-x is subnormal or infinite: usual_exp_of(x) equals exp_of(x) with less
// work.
constexpr uint32_t kUsualExpBits = 0x42ae0000u;  // bits of 87.0f
COHORT_HOST_DEVICE inline uint32_t magnitude_bits(float x) { return bits_of(x) & 0x7fffffffu; }
COHORT_HOST_DEVICE inline float usual_exp_of(float x) {
  const ReducedExp e = reduce_exp(x);
  return float_of(bits_of(e.power()) + (e.n << 23));
}

COHORT_HOST_DEVICE inline float exp_of(float x) {
#ifdef __CUDA_ARCH__
  return expf(x);
#else
  // Clamps x to a range outside of which e^x is 0 or infinite. Floats of one sign are ordered like their bits, so this
  // takes two instructions.
  const uint32_t above = std::min(bits_of(x), bits_of(-104.0f));
  const ReducedExp e = reduce_exp(float_of(uint32_t(std::min(int32_t(above), int32_t(bits_of(89.0f))))));
  // Scales by two factors, as a single power of two may be out of range. The shifts discard bits above n's own.
  const uint32_t half = uint32_t(int32_t(e.n << 9) >> 10);
  const float result = e.power() * power_of_two(half) * power_of_two(e.n - half);
  return x == x ? result : x;  // a NaN is returned as it is
#endif
}
COHORT_HOST_DEVICE inline double exp_of(double x) { return std::exp(x); }

// e^x - 1, exact for small x, keeping the sign of a zero; infinite above 89, -1 below -18. Computed in halves, as 2^128
// is not a float.
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
constexpr uint32_t kUsualTanhBits = 0x41200000u;  // bits of 10.0f
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

// x = 2^e m with sqrt(1/2) <= m < sqrt(2); log x = e ln 2 + log m. x is normal, positive and finite; the result is that
// of x times 2^-lifted.
// The smallest, and the number of positive normals.
constexpr uint32_t kSmallestNormalBits = 0x00800000u, kNormalBits = 0x7f000000u;
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

// ---- special functions, computed in double for all types ----------------------------------------------------------

COHORT_HOST_DEVICE inline uint64_t wide_bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, 8);
  return bits;
}
COHORT_HOST_DEVICE inline double wide_float_of(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, 8);
  return x;
}

// c[0] + c[1] x + ... + c[last] x^last.
template <int kCount>
COHORT_HOST_DEVICE inline double polynomial(const double (&c)[kCount], double x) {
  double sum = c[kCount - 1];
  for (int i = kCount - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// log x for a normal, positive, finite x, accurate to one unit in the last place: x = 2^e m with sqrt(1/2) <= m <
// sqrt(2), and log m = 2 artanh s with s = (m - 1) / (m + 1), by its series.
COHORT_HOST_DEVICE inline double wide_log_of(double x) {
#ifdef __CUDA_ARCH__
  return std::log(x);
#else
  const uint64_t kRoot = 0x3fe6a09e667f3bcdu, kOne = 0x3ff0000000000000u, kLow = 0x000fffffffffffffu;
  const uint64_t shifted = wide_bits_of(x) + (kOne - kRoot);  // the exponent, with its bias, above the fraction
  const double e = wide_float_of(0x4330000000000000u | shifted >> 52) - (4503599627370496.0 + 1023.0);
  const double f = wide_float_of((shifted & kLow) + kRoot) - 1.0, s = f / (2.0 + f), z = s * s;
  const double series[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                           2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const double kHigh = 6.93147180369123816490e-01, kRest = 1.90821492927058770002e-10;  // ln 2
  return e * kHigh + (2.0 * s + (s * z * polynomial(series, z) + e * kRest));
#endif
}

// e^x where the result is normal.
COHORT_HOST_DEVICE inline double wide_exp_of(double x) {
#ifdef __CUDA_ARCH__
  return std::exp(x);
#else
  const double kRound = 6755399441055744.0;  // 1.5 * 2^52: leaves n in the lowest bits of the sum
  const double shifted = x * 1.44269504088896340736 + kRound, n = shifted - kRound;
  const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  const double series[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,      1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600};
  return wide_float_of(wide_bits_of(polynomial(series, r)) + (wide_bits_of(shifted) << 52));
#endif
}

// The nearest integer for |x| up to 2^51; larger values change by at most one bit.
COHORT_HOST_DEVICE inline double wide_nearest_of(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// sin(pi r) for |r| <= 1/2.
COHORT_HOST_DEVICE inline double sin_pi_of(double r) {
  const double p = r * 3.14159265358979323846;
  const double series[] = {1.0,
                           -1.0 / 6,
                           1.0 / 120,
                           -1.0 / 5040,
                           1.0 / 362880,
                           -1.0 / 39916800,
                           1.0 / 6227020800.0,
                           -1.0 / 1307674368000.0,
                           1.0 / 355687428096000.0};
  return p * polynomial(series, p * p);
}

// log(gamma(x)) for x > 0, with relative error below 1e-14. Below 3: (x - 1) (x - 2) times a rational function around
// the zeros at 1 and 2, extended by one step of the recurrence; from 3 on: five steps and Stirling's series.
COHORT_HOST_DEVICE inline double positive_gammaln_of(double x) {
  const bool up = x < 0.75, down = x >= 2.25, near = x < 3.0;
  const double t = up ? x + 1.0 : down ? x - 1.0 : x, s = t - 1.5;
  const double above[] = {0.483128950540919864,  0.754140983705215466,   0.407362073339213499,
                          0.0877981195847691354, 0.00620428151532751964, 0.0000383440301343516119};
  const double below[] = {1.0,
                          1.86306549961114895,
                          1.2758157381568638,
                          0.389371157422259548,
                          0.0503098892471092312,
                          0.00198926794111077318};
  const double fraction = (t - 1.0) * (t - 2.0) * (polynomial(above, s) / polynomial(below, s));
  const double z = x + 5.0, inverse = 1.0 / z;
  const double stirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
  const double log = wide_log_of(near ? (up ? x : t) : z);
  const double low = fraction + (up ? -log : down ? log : 0.0);
  const double steps = wide_log_of(x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0));
  const double high =
      ((z - 0.5) * log - z + 0.91893853320467274178 + inverse * polynomial(stirling, inverse * inverse)) - steps;
  return near ? low : high;
}

// log |gamma(x)|. Negative x by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x).
COHORT_HOST_DEVICE inline float gammaln_of(float argument) {
#ifdef __CUDA_ARCH__
  return float(lgamma(double(argument)));
#else
  const double given = double(argument), infinity = std::numeric_limits<double>::infinity();
  const bool finite = std::fabs(given) < infinity, reflected = given < 0.0;
  const double x = finite ? given : 1.0;
  const double positive = positive_gammaln_of(reflected ? 1.0 - x : x > 0.0 ? x : 1.0);
  const double sine = std::fabs(sin_pi_of(x - wide_nearest_of(x)));
  const double other = wide_log_of(3.14159265358979323846 / (sine > 0.0 ? sine : 1.0)) - positive;
  const double found = given > 0.0 ? positive : sine > 0.0 ? other : infinity;
  return float(finite ? found : std::fabs(given));  // a NaN is returned as it is
#endif
}
COHORT_HOST_DEVICE inline double gammaln_of(double x) {
#ifdef __CUDA_ARCH__
  return lgamma(x);
#else
  int sign;                                         // std::lgamma would write a global
  return ::lgamma_r(x, &sign);
#endif
}

COHORT_HOST_DEVICE inline float gamma_of(float argument) {
#ifdef __CUDA_ARCH__
  return tgammaf(argument);
#else
  const double given = double(argument), infinity = std::numeric_limits<double>::infinity();
  const bool reflected = given < 0.0;
  const double x = std::fabs(given) < infinity ? given : 1.0, nearest = wide_nearest_of(x);
  const double log = positive_gammaln_of(reflected ? 1.0 - x : x > 0.0 ? x : 1.0);
  const double positive = wide_exp_of(log < 200.0 ? log : 200.0);  // no float above 89
  const double half = 0.5 * nearest, even = half == wide_nearest_of(half) ? 1.0 : -1.0;
  const double sine = even * sin_pi_of(x - nearest);
  const double other = 3.14159265358979323846 / ((sine != 0.0 ? sine : 1.0) * positive);
  const double pole = given == 0.0 ? 1.0 / given : std::numeric_limits<double>::quiet_NaN();
  const double found = given > 0.0 ? positive : sine != 0.0 ? other : pole;
  return float(std::fabs(given) < infinity ? found : given > 0.0 ? given : std::numeric_limits<double>::quiet_NaN());
#endif
}
COHORT_HOST_DEVICE inline double gamma_of(double x) { return std::tgamma(x); }

// The inverse of erf: x times a function of w = -log(1 - x^2), approximated on three intervals of w as its value at the
// left end plus s times a rational function of s, accurate to 4e-17. In the first interval s is w; in the others it is
// the distance from the left end in v = sqrt(w + 4), in which the function is nearly linear.
COHORT_HOST_DEVICE inline double erfinv_of(double x) {
  const double above0[] = {0.232013666534650332,   0.0443229628077979129,   0.0129366581092389879,
                           0.00176498924646746473, 0.000218986038425587503, 0.0000187731344583688463,
                           1.0720054048049996e-6,  3.57822540181054116e-8};
  const double below0[] = {1.0,
                           0.141257285654550484,
                           0.0587910671289122962,
                           0.00665428264524056189,
                           0.00108136812567903772,
                           0.0000894174376853623307,
                           6.04845873832718085e-6,
                           2.78349597053366118e-7,
                           2.2497637066683425e-9};
  const double above1[] = {1.27561651457111264,  1.56277191241990687,  1.62515485828253123,   1.00093309506177895,
                           0.502204251670326745, 0.180226335204370051, 0.0438286633070185321, 0.00614698473659850031};
  const double below1[] = {1.0,
                           1.26995472087403058,
                           1.36350696295658717,
                           0.836744269215550035,
                           0.439635945154972076,
                           0.156653533641446056,
                           0.0401079210788068777,
                           0.00593977907594794969,
                           0.0000124633980607913017};
  const double above2[] = {1.14316799155798293, 2.99199031535198497,  3.92477854667489982,  3.28488718211907983,
                           1.86070899875227355, 0.691382994962226291, 0.133603193318272025, 0.00937874108085691913};
  const double below2[] = {1.0,
                           2.64843535783872217,
                           3.50744067377373079,
                           2.96296087542478914,
                           1.6962361810669884,
                           0.63950611863738661,
                           0.127668522303673945,
                           0.00937072548068753073,
                           1.78104050832285803e-7};
  const double magnitude = std::fabs(x), rest = (1.0 - magnitude) * (1.0 + magnitude);
  const double w = -wide_log_of(rest > 0.0 ? rest : 1.0), v = std::sqrt(w + 4.0);
  const bool middle = w > 5.37890625, far = w > 14.0625;
  const double distance = (w - (far ? 14.0625 : 5.37890625)) / (v + (far ? 4.25 : 3.0625)), s = middle ? distance : w;
  const double first = polynomial(above0, s) / polynomial(below0, s);
  const double further =
      (far ? polynomial(above2, s) : polynomial(above1, s)) / (far ? polynomial(below2, s) : polynomial(below1, s));
  const double end = far ? 3.5875041872852242 : 2.159751093958448;
  const double times = middle ? end + s * further : 0.886226925452758 + s * first;
  const double beyond = magnitude == 1.0 ? x * double(INFINITY) : double(NAN);
  return magnitude < 1.0 ? x * times : beyond;
}
COHORT_HOST_DEVICE inline float erfinv_of(float x) { return float(erfinv_of(double(x))); }

}  // namespace COHORT_MATH_VARIANT
}  // namespace pointwise
}  // namespace cohort
