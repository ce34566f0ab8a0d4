// SPDX-License-Identifier: Apache-2.0
// NCCL for the devices of one process and one thread: a collective starts when all of its streams have reached it.
// Ranks are summed in order.
#pragma GCC visibility push(default)  // found by name, as the real ones are
#include <nccl.h>
#pragma GCC visibility pop

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdlib>
#include <cstring>

#include "sim.hpp"

using namespace cudasim;

namespace {

struct RankBuffers {
  const void *from;
  void *to;
};

struct Collective : Rendezvous {
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  std::vector<RankBuffers> parts;  // by rank
};

struct Clique {
  std::vector<std::vector<std::shared_ptr<Collective>>> posted;  // by rank, in the order of the calls
  bool aborted = false;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  size_t rank;
  int device;
};

namespace {

struct Posted {
  ncclComm_t comm;
  RankBuffers part;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  cudaStream_t stream;
};
thread_local int group_depth = 0;
thread_local std::vector<Posted> group;

size_t size_of(ncclDataType_t type) {
  return type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : type == ncclFloat16 || type == ncclBfloat16 ? 2 : 0;
}

double read(const void *data, ncclDataType_t type, size_t i) {
  switch (type) {
    case ncclFloat64:
      return static_cast<const double *>(data)[i];
    case ncclFloat16:
      return double(__half2float(static_cast<const __half *>(data)[i]));
    case ncclBfloat16:
      return double(__bfloat162float(static_cast<const __nv_bfloat16 *>(data)[i]));
    default:
      return double(static_cast<const float *>(data)[i]);
  }
}

void write(void *data, ncclDataType_t type, size_t i, double value) {
  switch (type) {
    case ncclFloat64:
      static_cast<double *>(data)[i] = value;
      return;
    case ncclFloat16:
      static_cast<__half *>(data)[i] = __float2half(float(value));
      return;
    case ncclBfloat16:
      static_cast<__nv_bfloat16 *>(data)[i] = __float2bfloat16(float(value));
      return;
    default:
      static_cast<float *>(data)[i] = float(value);
  }
}

bool reach(const void *data, size_t bytes, int device) {
  std::string why;
  Block *const block = sim().find_live(data, bytes, device, &why);
  if (block) {
    sim().open(*block);
  } else {
    sim().fault(device, cudaErrorIllegalAddress, "ncclAllReduce: an array is " + why);
  }
  return block != nullptr;
}

void all_reduce(const Collective &all) {
  const size_t bytes = all.count * size_of(all.type);
  for (size_t r = 0; r < all.parts.size(); ++r) {
    const int device = all.streams[r]->context->device;
    if (!reach(all.parts[r].from, bytes, device) || !reach(all.parts[r].to, bytes, device)) return;
  }
  std::vector<double> sums(all.count, 0.0);
  for (const RankBuffers &part : all.parts)
    for (size_t i = 0; i < all.count; ++i) sums[i] += read(part.from, all.type, i);
  for (const RankBuffers &part : all.parts)
    for (size_t i = 0; i < all.count; ++i)
      write(part.to, all.type, i, all.op == ncclAvg ? sums[i] / double(all.parts.size()) : sums[i]);
}

// The mutex must be held.
ncclResult_t post(const Posted &call) {
  Clique &clique = *call.comm->clique;
  auto &own = clique.posted[call.comm->rank];
  std::shared_ptr<Collective> all;
  for (const auto &other : clique.posted)
    if (other.size() > own.size()) all = other[own.size()];
  if (!all) {
    all = std::make_shared<Collective>();
    all->num_expected = clique.posted.size();
    all->count = call.count;
    all->type = call.type;
    all->op = call.op;
    all->parts.resize(clique.posted.size());
    all->run = [collective = all.get()] { all_reduce(*collective); };
  }
  if (all->count != call.count || all->type != call.type || all->op != call.op) {
    sim().report("ncclAllReduce: the ranks disagree on what is to be summed");
    return ncclInvalidArgument;
  }
  own.push_back(all);
  all->parts[call.comm->rank] = call.part;
  all->streams.push_back(call.stream);
  Op op;
  op.what = "a collective";
  op.rendezvous = all;
  sim().enqueue(call.stream, std::move(op));
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  const char *const told = std::getenv("CUDASIM_NCCL");
  *version = told ? std::atoi(told) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "no error" : "invalid usage"; }

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices) {
  const std::lock_guard<std::mutex> lock(sim().mutex);
  sim().check_no_launch("ncclCommInitAll");
  const auto clique = std::make_shared<Clique>();
  clique->posted.resize(size_t(count));
  for (int i = 0; i < count; ++i) {
    const int device = devices ? devices[i] : i;
    for (int j = 0; j < i; ++j)
      if (comms[j]->device == device) return ncclInvalidUsage;  // one rank a device
    comms[i] = new ncclComm{clique, size_t(i), device};
  }
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(sim().mutex);
  sim().check_no_launch("ncclCommDestroy");
  delete comm;
  return ncclSuccess;
}

// Collectives that wait for other ranks end without a result.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::unique_lock<std::mutex> lock(sim().mutex);
  sim().changed.wait(lock, [] { return !sim().aborts_hang; });
  comm->clique->aborted = true;
  for (const auto &calls : comm->clique->posted)
    for (const auto &all : calls) all->done = true;
  sim().changed.notify_all();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  const std::lock_guard<std::mutex> lock(sim().mutex);
  *error = sim().devices[comm->device].fault ? ncclUnhandledCudaError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  const Posted call{comm, {from, to}, count, type, op, stream};
  const std::lock_guard<std::mutex> lock(sim().mutex);
  if (comm->clique->aborted || size_of(type) == 0 || (op != ncclSum && op != ncclAvg)) return ncclInvalidArgument;
  if (!sim().streams.count(stream) || stream->context->device != comm->device) {
    sim().report("ncclAllReduce: the stream is of another device than the communicator");
    return ncclInvalidArgument;
  }
  if (group_depth > 0) {
    group.push_back(call);
    return ncclSuccess;
  }
  if (comm->clique->posted.size() == 1) return post(call);
  sim().report("deadlock: a collective call of one thread for several devices is in no group");
  return ncclInvalidUsage;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  std::unique_lock<std::mutex> lock(sim().mutex);
  ncclResult_t first = ncclSuccess;
  for (const Posted &call : group) {
    const ncclResult_t result = post(call);
    if (first == ncclSuccess) first = result;
    // Lets calls of other threads come in between.
    sim().launching = std::this_thread::get_id();
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    sim().launching = {};
  }
  group.clear();
  return first;
}

}  // extern "C"
