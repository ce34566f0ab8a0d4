// SPDX-License-Identifier: Apache-2.0
// Sizes of launches over a flat range of elements.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace cohort {

constexpr int kBlockThreads = 256;

// Enough blocks for `count` elements, one a thread, up to what keeps the largest device busy; kernels loop with a grid
// stride.
inline unsigned blocks_for(int64_t count) {
  return unsigned(std::min<int64_t>((count + kBlockThreads - 1) / kBlockThreads, 132 * 16));
}

}  // namespace cohort
