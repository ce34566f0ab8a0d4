// SPDX-License-Identifier: Apache-2.0
// For sums of products: the compiler, which is not to contract (the Makefile says why), would make two instructions of
// what the device does in one.
#pragma once

#include <cuda_runtime.h>

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

}  // namespace cohort
