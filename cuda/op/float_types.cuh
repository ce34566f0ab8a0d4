// SPDX-License-Identifier: Apache-2.0
// Elements of a floating type that a kernel knows at compile time, in their compute type.
#pragma once

#include "cuda/op/elements.cuh"

namespace cohort {

__device__ inline float widened(float x) { return x; }
__device__ inline double widened(double x) { return x; }
__device__ inline float widened(Float16 x) { return to_float(x); }
__device__ inline float widened(Bfloat16 x) { return to_float(x); }

__device__ inline void store_rounded(float *to, float x) { *to = x; }
__device__ inline void store_rounded(double *to, double x) { *to = x; }
__device__ inline void store_rounded(Float16 *to, float x) { *to = to_float16(x); }
__device__ inline void store_rounded(Bfloat16 *to, float x) { *to = to_bfloat16(x); }

}  // namespace cohort
