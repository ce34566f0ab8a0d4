// SPDX-License-Identifier: Apache-2.0
// Common code of the Fourier transforms of all backends. Powers of two by Cooley and Tukey's butterflies. Other
// lengths n by Bluestein's method: with j k = (j^2 + k^2 - (k - j)^2) / 2 a transform is a convolution, which is a
// product of transforms of a power of two.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/dtype.hpp"

namespace cohort {
namespace spectral {

struct Complex {
  double real, imag;
  COHORT_HOST_DEVICE Complex operator+(const Complex &b) const { return {real + b.real, imag + b.imag}; }
  COHORT_HOST_DEVICE Complex operator-(const Complex &b) const { return {real - b.real, imag - b.imag}; }
  COHORT_HOST_DEVICE Complex operator*(const Complex &b) const {
    return {real * b.real - imag * b.imag, real * b.imag + imag * b.real};
  }
  COHORT_HOST_DEVICE Complex conjugate() const { return {real, -imag}; }
};

// e^(-i pi k / n), k taken modulo 2 n first: large angles lose digits.
COHORT_HOST_DEVICE inline Complex turn(int64_t k, int64_t n) {
  const double angle = -3.14159265358979323846 * double(k % (2 * n)) / double(n);
  return {std::cos(angle), std::sin(angle)};
}
// e^(-i pi k^2 / n)
COHORT_HOST_DEVICE inline Complex chirp(int64_t k, int64_t n) {
  return turn(int64_t((static_cast<unsigned __int128>(k) * uint64_t(k)) % uint64_t(2 * n)), n);
}

inline int64_t power_of_two(int64_t least) {
  int64_t n = 1;
  while (n < least) n *= 2;
  return n;
}
// The length of the butterflies for a transform of length n.
inline int64_t transform_length(int64_t n) { return n == power_of_two(n) ? n : power_of_two(2 * n - 1); }

}  // namespace spectral
}  // namespace cohort
