// SPDX-License-Identifier: Apache-2.0
// For kernels that are compiled by element type: neighbouring elements that are loaded and stored at once, and
// conversions between elements and the type in which they are computed.
#pragma once

#include <type_traits>

#include "cuda/cuda_launch.hpp"
#include "cuda/op/elements.cuh"

namespace cohort {

template <typename T>
using ComputeOf = typename Accumulator<T>::type;

template <typename T>
__device__ ComputeOf<T> to_compute(T x) {
  if constexpr (kIsHalf<T>) {
    return to_float(x);
  } else {
    return ComputeOf<T>(x);
  }
}

template <typename T>
__device__ T from_compute(ComputeOf<T> x) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(x);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(x);
  } else {
    return cast_element<T>(x);
  }
}

// The number of elements that fill a vector of 16 bytes.
template <typename T>
constexpr int kVectorSize = int(16 / sizeof(T));

// N elements, at an address that is a multiple of their size.
template <typename T, int N>
struct alignas(N * sizeof(T)) Several {
  T at[N];
};

template <int N, typename T>
__device__ Several<T, N> load_several(const T *from) {
  COHORT_CHECK_VECTOR(from, N * sizeof(T));
  return *reinterpret_cast<const Several<T, N> *>(from);
}

template <typename T, int N>
__device__ void store_several(T *to, const Several<T, N> &elements) {
  COHORT_CHECK_VECTOR(to, N * sizeof(T));
  *reinterpret_cast<Several<T, N> *>(to) = elements;
}

}  // namespace cohort
