// SPDX-License-Identifier: Apache-2.0
// For kernels that are compiled by element type: conversions between elements and the type in which they are computed.
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

}  // namespace cohort
