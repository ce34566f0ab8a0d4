// SPDX-License-Identifier: Apache-2.0
// How kernels are launched, and the CUDA extensions that they use: tests/cudasim replaces all of it, so .cu files must
// write neither <<<>>> nor __shared__.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "cuda/cuda_context.hpp"

namespace cohort {

constexpr int kBlockThreads = 256;

struct Grid {
  dim3 blocks, threads;
};

// Enough blocks for `count` elements, one a thread, up to what keeps the largest device busy; kernels loop with a grid
// stride.
inline Grid flat_grid(int64_t count) {
  return {dim3(unsigned(std::min<int64_t>((count + kBlockThreads - 1) / kBlockThreads, 132 * 16))),
          dim3(kBlockThreads)};
}

// `stream`: Lane::stream of the lane that the kernel runs on.
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), const Grid &grid, void *stream, const Args &...args) {
  static_assert((sizeof(Params) + ... + 0) <= 4000, "a kernel's parameters are 4096 bytes at most");
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.stream = static_cast<cudaStream_t>(stream);
  use_code(reinterpret_cast<const void *>(kernel),
           [&] { CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...)); });
}

// COHORT_SHARED(float, tile, [8][32]) declares an array in shared memory; 48 KiB at most in all arrays of a block.
#ifdef __CUDACC__
#define COHORT_SHARED(type, name, dims) __shared__ type name dims
#define COHORT_CHECK_VECTOR(address, bytes)
#endif

// N elements, loaded and stored at once; addresses must be multiples of their size.
template <typename T, int N>
struct alignas(N * sizeof(T)) Several {
  static constexpr int kSize = N;
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

// The elements that fill 16 bytes.
template <typename T>
using Vector = Several<T, int(16 / sizeof(T))>;

template <typename T>
__device__ Vector<T> load_vector(const T *from) {
  return load_several<Vector<T>::kSize>(from);
}

template <typename T>
__device__ void store_vector(T *to, const Vector<T> &vector) {
  store_several(to, vector);
}

inline bool can_be_vectors(std::initializer_list<const void *> addresses) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [](const void *address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; });
}

}  // namespace cohort
