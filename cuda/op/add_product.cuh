// SPDX-License-Identifier: Apache-2.0
// For sums of products: the compiler, which is not to contract (the Makefile says why), would make two instructions of
// what the device does in one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace cohort {

// sum + a * b. On the device rounded once.
template <typename C>
__device__ C add_product(C sum, C a, C b) {
#ifdef __CUDA_ARCH__
  return fma(a, b, sum);
#else
  return sum + a * b;
#endif
}

// Whole numbers modulo 2^32.
__device__ inline int32_t add_product(int32_t sum, int32_t a, int32_t b) {
  return int32_t(uint32_t(sum) + uint32_t(a) * uint32_t(b));
}

}  // namespace cohort
