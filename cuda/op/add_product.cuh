// SPDX-License-Identifier: Apache-2.0
// A fused multiply-add for sums of products: contraction is switched off for the compiler (the Makefile says why),
// which would emit two instructions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace cohort {

// sum + a * b; rounded once on the device.
template <typename C>
__device__ C add_product(C sum, C a, C b) {
#ifdef __CUDA_ARCH__
  return fma(a, b, sum);
#else
  return sum + a * b;
#endif
}

// Integers modulo 2^32.
__device__ inline int32_t add_product(int32_t sum, int32_t a, int32_t b) {
  return int32_t(uint32_t(sum) + uint32_t(a) * uint32_t(b));
}

}  // namespace cohort
