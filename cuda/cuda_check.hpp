// SPDX-License-Identifier: Apache-2.0
// CUDA_CHECK: every call of the CUDA runtime stands inside it; throws Error. For cuBLAS: cuda_cublas.hpp. Used by this
// folder only.
#pragma once

#include <cuda_runtime.h>

#include "base/error.hpp"

namespace cohort {

inline void check_cuda(cudaError_t status, const char *call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears what is not sticky
  const Code code = status == cudaErrorMemoryAllocation ? Code::kOutOfMemory : Code::kDevice;
  throw Error(code, text("CUDA: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ") in ", call), "cuda");
}

#define CUDA_CHECK(call) ::cohort::check_cuda((call), #call)

}  // namespace cohort
