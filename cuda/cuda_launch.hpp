// SPDX-License-Identifier: Apache-2.0
// The one way in which kernels are launched, and what they use that plain C++ lacks: tests/cudasim has doubles of all
// of it. So .cu files write neither <<<>>> nor __shared__.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "cuda/cuda_check.hpp"

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

// `stream` is that of the lane that a kernel runs on.
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), const Grid &grid, void *stream, const Args &...args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.stream = static_cast<cudaStream_t>(stream);
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...));
}

// COHORT_SHARED(float, tile, [8][32]): an array of the block's threads together, of at most 48 KiB with all others.
#ifdef __CUDACC__
#define COHORT_SHARED(type, name, dims) __shared__ type name dims
#endif

}  // namespace cohort
