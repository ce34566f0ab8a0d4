// SPDX-License-Identifier: Apache-2.0
// The few functions of NCCL that are used here, loaded when they are first needed: neither the build nor a run requires
// NCCL, unless sums span several GPUs. Declared here, with the constants of its ABI, so that its header is not
// required.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "base/dtype.hpp"

namespace cohort {

struct NcclComm;  // ncclComm

struct Nccl {
  enum Result : int { kSuccess = 0, kInProgress = 7 };  // ncclResult_t; anything else is an error
  enum Op : int { kSum = 0 };                           // ncclRedOp_t

  int (*get_version)(int *version);
  const char *(*error_string)(int result);
  int (*comm_init_all)(NcclComm **comms, int count, const int *devices);
  int (*comm_destroy)(NcclComm *comm);
  int (*comm_abort)(NcclComm *comm);
  int (*comm_get_async_error)(NcclComm *comm, int *error);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void *from, void *to, size_t count, int type, int op, NcclComm *comm, cudaStream_t stream);
};

// Null, and *why, if there is no usable one. Prefers the library that the host has already loaded.
const Nccl *find_nccl(std::string *why);
int nccl_type(Dtype dtype);  // ncclDataType_t; -1: it has no such type

}  // namespace cohort
