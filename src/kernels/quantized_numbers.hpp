// SPDX-License-Identifier: Apache-2.0
// Conversion of numbers to bytes, for the kernels of op/quantization.hpp and op/int8_layer.hpp. Compiled by nvcc,
// too.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/dtype.hpp"

namespace cohort {
namespace quantized {

struct Bounds {
  float low = 0, high = 0;
};

// The nearest byte, ties to even; numbers out of range become the first or the last byte. Loops of it are vectorised.
template <typename T, typename F>
COHORT_HOST_DEVICE T nearest_byte(F x) {
  constexpr F kLow = std::is_same_v<T, int8_t> ? -128 : 0, kHigh = std::is_same_v<T, int8_t> ? 127 : 255;
  // 1.5 * 2^23, or 2^52: what is added to it has no fraction.
  constexpr F kWhole = std::is_same_v<F, float> ? F(12582912) : F(6755399441055744);
  const F above = x > kLow ? x : kLow, inside = above < kHigh ? above : kHigh;
  return T(int32_t(inside + kWhole - kWhole));
}

// The same, but NaN becomes 0.
template <typename T>
COHORT_HOST_DEVICE T byte_of(double x) {
  return nearest_byte<T>(x != x ? 0.0 : x);
}

// to[i] = x[i] * factor, in the type of the factor, as bytes of `dtype`, for begin <= i < end.
template <typename X, typename F>
void bytes_of(const X *x, F factor, Dtype dtype, void *to, int64_t begin, int64_t end) {
  if (dtype == Dtype::kUint8) {
    for (int64_t i = begin; i < end; ++i) static_cast<uint8_t *>(to)[i] = byte_of<uint8_t>(F(x[i]) * factor);
  } else {
    for (int64_t i = begin; i < end; ++i) static_cast<int8_t *>(to)[i] = byte_of<int8_t>(F(x[i]) * factor);
  }
}

// The scale of a row of int8 weights, and a weight in that scale. The scale is 1 for a row that holds no finite
// number other than 0.
COHORT_HOST_DEVICE inline double weight_scale(float largest) {
  return largest > 0 && std::isfinite(largest) ? double(largest) / 127 : 1;
}
COHORT_HOST_DEVICE inline int8_t weight_byte(float weight, double scale) {
  return byte_of<int8_t>(double(weight) / scale);
}

}  // namespace quantized
}  // namespace cohort
