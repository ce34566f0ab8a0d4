// SPDX-License-Identifier: Apache-2.0
// The few functions of NCCL that are used here, found when they are first needed: neither to build nor to run takes
// NCCL, unless several GPUs sum. Declared here, so that its header need not be there either; the numbers are its ABI's.
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

// Null, and why, where there is none that can be used. The one that the host has loaded already, if there is one.
const Nccl *find_nccl(std::string *why);
int nccl_type(Dtype dtype);  // ncclDataType_t; -1: it has no such type

}  // namespace cohort
