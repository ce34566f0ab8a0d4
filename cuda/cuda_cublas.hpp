// SPDX-License-Identifier: Apache-2.0
// CUBLAS_CHECK: every call of cuBLAS stands inside it; throws Error. Apart from cuda_check.hpp, because the header of
// cuBLAS takes longer to compile than most kernels.
#pragma once

#include <cublasLt.h>

#include "base/error.hpp"

namespace cohort {

inline void check_cublas(cublasStatus_t status, const char *call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const Code code = status == CUBLAS_STATUS_ALLOC_FAILED ? Code::kOutOfMemory : Code::kDevice;
  throw Error(code, text("cuBLAS: ", cublasLtGetStatusString(status), " in ", call), "cublas");
}

#define CUBLAS_CHECK(call) ::cohort::check_cublas((call), #call)

}  // namespace cohort
