// SPDX-License-Identifier: Apache-2.0
// Reductions over the threads of a block, for use within CudaBackend::for_each_block() (cuda_backend.cuh): all threads
// call them, and all get the result. Orders are fixed, so that results repeat.
#pragma once

#include "cuda/op/cuda_backend.cuh"

namespace cohort {

// fn(fn(a, b), ...) over the values of all threads; fn must be associative and commutative.
template <typename T, typename Fn>
__device__ T combined(const T &own, const Fn &fn) {
  COHORT_SHARED(T, all, [kBlockThreads]);
  all[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) all[threadIdx.x] = fn(all[threadIdx.x], all[threadIdx.x + half]);
    __syncthreads();
  }
  const T result = all[0];
  __syncthreads();
  return result;
}

// The first i from `begin` on for which holds(i) is true; `end` if there is none.
template <typename Fn>
__device__ int64_t first_where(int64_t begin, int64_t end, const Fn &holds) {
  constexpr int kEach = 8;
  int64_t found = end;
  for (; begin < end && found == end; begin += kEach * int64_t(blockDim.x)) {
    for (int k = 0; k < kEach && found == end; ++k) {
      const int64_t i = begin + k * int64_t(blockDim.x) + threadIdx.x;
      if (i < end && holds(i)) found = i;
    }
    found = combined(found, [](int64_t a, int64_t b) { return a < b ? a : b; });
  }
  return found;
}

// Calls to(k, i) for the k-th i < count for which holds(i) is true, for k < most. Returns the number of calls.
template <typename Fn, typename To>
__device__ int64_t number_those(int64_t count, int64_t most, const Fn &holds, const To &to) {
  COHORT_SHARED(int64_t, of_warp, [kBlockThreads / 32]);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int64_t before = 0;
  for (int64_t begin = 0; begin < count && before < most; begin += blockDim.x) {
    const int64_t i = begin + threadIdx.x;
    const bool own = i < count && holds(i);
    int up_to_own = own ? 1 : 0;
    for (unsigned by = 1; by < 32; by *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, up_to_own, int(by));
      if (lane >= by) up_to_own += other;
    }
    if (lane == 31) of_warp[warp] = up_to_own;
    __syncthreads();
    int64_t k = before + up_to_own - 1;
    for (unsigned w = 0; w < warps; ++w) {
      if (w < warp) k += of_warp[w];
      before += of_warp[w];
    }
    if (own && k < most) to(k, i);
    __syncthreads();
  }
  return before < most ? before : most;
}

}  // namespace cohort
