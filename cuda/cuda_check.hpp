// SPDX-License-Identifier: Apache-2.0
// Every call into CUDA and cuBLAS stands inside one of these; they throw Error. Used by this folder only.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "base/error.hpp"

namespace cohort {

inline void check_cuda(cudaError_t status, const char *call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears what is not sticky
  const Code code = status == cudaErrorMemoryAllocation ? Code::kOutOfMemory : Code::kDevice;
  throw Error(code, text("CUDA: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ") in ", call), "cuda");
}

inline void check_cublas(cublasStatus_t status, const char *call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const Code code = status == CUBLAS_STATUS_ALLOC_FAILED ? Code::kOutOfMemory : Code::kDevice;
  throw Error(code, text("cuBLAS: ", cublasLtGetStatusString(status), " in ", call), "cublas");
}

#define CUDA_CHECK(call) ::cohort::check_cuda((call), #call)
#define CUBLAS_CHECK(call) ::cohort::check_cublas((call), #call)

}  // namespace cohort
