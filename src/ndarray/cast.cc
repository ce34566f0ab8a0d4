// SPDX-License-Identifier: Apache-2.0
// Casts and slices in host memory. Compiled with -O3 and without trapping floating point, so that the loops vectorise.
#include <algorithm>
#include <cstring>

#include "ndarray/ndarray.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace cohort {
namespace {

constexpr int64_t kBlock = 512;

// Like cast_element, but vectorisable: casts from floats to small integers go through int32. Results differ only for
// values outside int32, which contract NDA-08 leaves open.
template <typename U, typename T>
U cast_one(T value) {
  if constexpr (std::is_floating_point_v<T> && std::is_integral_v<U> && !std::is_same_v<U, bool> && sizeof(U) <= 4) {
    const bool fits = value >= T(-2147483648.0) && value < T(2147483648.0);
    return U(fits ? int32_t(value) : INT32_MIN);
  } else {
    return cast_element<U>(value);
  }
}

void half_to_float(const Float16 *from, float *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = float(from[i]);
}

void float_to_half(const float *from, Float16 *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = Float16(from[i]);
}

#if defined(__x86_64__)
// The processor rounds like Float16 and keeps the same bits of NaN.
__attribute__((target("avx,f16c"))) void half_to_float_f16c(const Float16 *from, float *to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
  }
  for (; i < count; ++i) to[i] = float(from[i]);
}

__attribute__((target("avx,f16c"))) void float_to_half_f16c(const float *from, Float16 *to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < count; ++i) to[i] = Float16(from[i]);
}

bool has_f16c() {
  static const bool has = [] {  // not every compiler's __builtin_cpu_supports accepts "f16c"
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
  }();
  return has;
}
#endif

void cast_half(const Float16 *from, float *to, int64_t count) {
#if defined(__x86_64__)
  if (has_f16c()) return half_to_float_f16c(from, to, count);
#endif
  half_to_float(from, to, count);
}

void cast_half(const float *from, Float16 *to, int64_t count) {
#if defined(__x86_64__)
  if (has_f16c()) return float_to_half_f16c(from, to, count);
#endif
  float_to_half(from, to, count);
}

template <typename T, typename U>
void cast_loop(const T *from, U *to, int64_t count) {
  if constexpr (std::is_same_v<T, U>) {
    std::memmove(to, from, size_t(count) * sizeof(T));
  } else if constexpr (std::is_same_v<T, Float16> && std::is_same_v<U, float>) {
    cast_half(from, to, count);
  } else if constexpr (std::is_same_v<T, float> && std::is_same_v<U, Float16>) {
    cast_half(from, to, count);
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<U, Float16>) {
    float block[kBlock];  // through float, block by block
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      cast_loop(from + begin, block, n);
      cast_loop(block, to + begin, n);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = cast_one<U>(from[i]);
  }
}

struct AxisSlice {
  int64_t outer;   // number of contiguous blocks
  int64_t stride;  // elements from the start of one block to that of the next
  int64_t start;   // start of the first block
  int64_t length;  // elements per block
};

AxisSlice slice_of(const Shape &shape, int axis, int64_t begin, int64_t end) {
  const int64_t inner = shape.size(axis + 1, shape.rank());
  return {shape.size(0, axis), shape[axis] * inner, begin * inner, (end - begin) * inner};
}

}  // namespace

void cast_elements(const void *from, Dtype from_dtype, void *to, Dtype to_dtype, int64_t count) {
  if (count <= 0) return;
  dispatch(from_dtype, [&](auto from_tag) {
    dispatch(to_dtype, [&](auto to_tag) {
      cast_loop(static_cast<const decltype(from_tag) *>(from), static_cast<decltype(to_tag) *>(to), count);
    });
  });
}

void copy_slice(const void *from, const Shape &shape, Dtype from_dtype, int axis, int64_t begin, int64_t end, void *to,
                Dtype to_dtype) {
  const AxisSlice slice = slice_of(shape, axis, begin, end);
  const int64_t from_size = int64_t(dtype_size(from_dtype)), to_size = int64_t(dtype_size(to_dtype));
  const char *source = static_cast<const char *>(from) + slice.start * from_size;
  char *target = static_cast<char *>(to);
  for (int64_t i = 0; i < slice.outer; ++i) {
    cast_elements(source, from_dtype, target, to_dtype, slice.length);
    source += slice.stride * from_size;
    target += slice.length * to_size;
  }
}

void paste_slice(const void *from, Dtype from_dtype, void *to, const Shape &shape, Dtype to_dtype, int axis,
                 int64_t begin, int64_t end) {
  const AxisSlice slice = slice_of(shape, axis, begin, end);
  const int64_t from_size = int64_t(dtype_size(from_dtype)), to_size = int64_t(dtype_size(to_dtype));
  const char *source = static_cast<const char *>(from);
  char *target = static_cast<char *>(to) + slice.start * to_size;
  for (int64_t i = 0; i < slice.outer; ++i) {
    cast_elements(source, from_dtype, target, to_dtype, slice.length);
    source += slice.length * from_size;
    target += slice.stride * to_size;
  }
}

}  // namespace cohort
