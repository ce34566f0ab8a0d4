// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime and driver that cuda/ calls. A call of another one does not link.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cudasim.h"
#include "sim.hpp"

using namespace cudasim;

namespace {

constexpr auto kPlain = Call::kContext;

bool knows(CUstream_st *stream) { return stream && sim().streams.count(stream) && !stream->destroyed; }
bool knows(CUevent_st *event) { return event && sim().events.count(event); }

enum class MemoryKind { kDevice, kPinned, kPageable };

MemoryKind place_of(const void *address) {
  if (sim().is_device_address(address)) return MemoryKind::kDevice;
  const Block *const block = sim().find(address);
  return block ? MemoryKind::kPinned : MemoryKind::kPageable;
}

cudaError_t wait_for(Call &call, CUctx_st *context, const std::function<bool()> &done) {
  if (!sim().run_until(call.lock, done)) return call.result(cudaErrorLaunchTimeout);
  return call.result(sim().devices[context->device].fault);
}

// Opens the pages of these bytes if they are still live memory, as they were when the call was made; else faults the
// device and returns false.
bool reach(const void *address, size_t bytes, const char *what, MemoryKind place = MemoryKind::kDevice) {
  if (place == MemoryKind::kPageable) return true;
  std::string why;
  Block *const block = sim().find_live(address, bytes, -2, &why);
  if (block) {
    sim().open(*block);
  } else {
    sim().fault(sim().running_device, cudaErrorIllegalAddress, std::string(what) + ": " + why);
  }
  return block != nullptr;
}

void copy_bytes(void *to, MemoryKind target, const void *from, MemoryKind source, size_t bytes) {
  if (reach(to, bytes, "a copy writes to", target) && reach(from, bytes, "a copy reads from", source)) {
    std::memmove(to, from, bytes);
  }
}

bool fits(cudaMemcpyKind kind, MemoryKind to, MemoryKind from) {
  const bool to_device = to == MemoryKind::kDevice, from_device = from == MemoryKind::kDevice;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    default:
      return true;
  }
}

// For calls that a captured stream forbids on any thread: invalidates the capture. True if there was one.
bool conflicts(CUstream_st *stream, const char *what) {
  if (stream->capture) sim().spoil(*stream, std::string(what) + " in a stream that is captured");
  return stream->capture != nullptr;
}

void close_capture(Capture &capture) {
  for (CUstream_st *stream : capture.streams) stream->capture = nullptr, stream->captured.clear();
}

}  // namespace

extern "C" {

// ---- errors

cudaError_t cudaGetLastError() {
  const cudaError_t last = this_thread().last_error;
  this_thread().last_error = cudaSuccess;
  return last;
}
cudaError_t cudaPeekAtLastError() { return this_thread().last_error; }
int cudasim_last_error() { return this_thread().last_error; }

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError:
      return "cudaErrorInitializationError";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    default:
      return "cudaError of the simulator";
  }
}
const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorInitializationError:
      return "initialization error";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    default:
      return cudaGetErrorName(error);
  }
}

// ---- devices and contexts

cudaError_t cudaGetDeviceCount(int *count) {
  const Call call("cudaGetDeviceCount", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  *count = sim().num_devices;
  return call.result(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

// Works with any driver version.
cudaError_t cudaDriverGetVersion(int *version) {
  *version = sim().driver_version;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  const Call call("cudaGetDevice", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  const auto &contexts = this_thread().contexts;
  *device = contexts.empty() || !contexts.back() ? 0 : contexts.back()->device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const Call call("cudaSetDevice", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  if (device < 0 || device >= sim().num_devices) return call.result(cudaErrorInvalidDevice);
  auto &contexts = this_thread().contexts;
  if (contexts.empty()) contexts.push_back(nullptr);
  contexts.back() = primary_context(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  const Call call("cudaDeviceGetAttribute", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  if (device < 0 || device >= sim().num_devices) return call.result(cudaErrorInvalidDevice);
  const auto known = sim().attributes.find(attribute);
  if (known == sim().attributes.end()) return call.result(cudaErrorInvalidValue);
  *value = known->second;
  return cudaSuccess;
}

CUresult cuInit(unsigned) {
  return getpid() == sim().process && sim().driver_serves() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= sim().num_devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  const Call call("cuDevicePrimaryCtxRetain", Call::kNothing);
  if (call.refused) return CUDA_ERROR_NOT_INITIALIZED;
  if (device < 0 || device >= sim().num_devices) return CUDA_ERROR_INVALID_DEVICE;
  *context = primary_context(device);
  ++sim().devices[device].primary_uses;
  return CUDA_SUCCESS;
}

// Memory and streams of the context stay valid: the runtime holds its own reference.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  const Call call("cuDevicePrimaryCtxRelease", Call::kNothing);
  if (call.refused) return CUDA_ERROR_NOT_INITIALIZED;
  return --sim().devices[device].primary_uses < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  const Call call("cuCtxPushCurrent", Call::kNothing);
  if (call.refused) return CUDA_ERROR_NOT_INITIALIZED;
  this_thread().contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  const Call call("cuCtxPopCurrent", Call::kNothing);
  if (call.refused) return CUDA_ERROR_NOT_INITIALIZED;
  auto &contexts = this_thread().contexts;
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status) {
  const Call call("cudaGetDriverEntryPointByVersion", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  static const std::map<std::string, void *> kKnown = {
      {"cuInit", reinterpret_cast<void *>(cuInit)},
      {"cuDeviceGet", reinterpret_cast<void *>(cuDeviceGet)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void *>(cuDevicePrimaryCtxRetain)},
      {"cuDevicePrimaryCtxRelease", reinterpret_cast<void *>(cuDevicePrimaryCtxRelease_v2)},
      {"cuCtxPushCurrent", reinterpret_cast<void *>(cuCtxPushCurrent_v2)},
      {"cuCtxPopCurrent", reinterpret_cast<void *>(cuCtxPopCurrent_v2)},
      {"cuModuleLoadData", reinterpret_cast<void *>(cuModuleLoadData)},
      {"cuModuleUnload", reinterpret_cast<void *>(cuModuleUnload)},
      {"cuModuleGetFunction", reinterpret_cast<void *>(cuModuleGetFunction)},
      {"cuLaunchKernel", reinterpret_cast<void *>(cuLaunchKernel)},
  };
  const auto known = kKnown.find(symbol);
  *function = known == kKnown.end() ? nullptr : known->second;
  *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaMalloc(void **data, size_t bytes) {
  const Call call("cudaMalloc", kPlain, true);
  if (call.refused) return call.result(call.refused);
  Block *const block = sim().allocate(call.context->device, bytes, Block::State::kLive);
  if (!block) return call.result(cudaErrorMemoryAllocation);
  *data = block->data;
  return cudaSuccess;
}

// Queued work that uses the memory faults: callers must not rely on cudaFree() to wait.
cudaError_t cudaFree(void *data) {
  const Call call("cudaFree", Call::kCertain, true);
  if (call.refused) return call.result(call.refused);
  if (!data) return cudaSuccess;
  Block *const block = sim().find(data);
  if (!block || block->device < 0 || block->data != data || block->state != Block::State::kLive) {
    sim().report("cudaFree of " + in_words(data));
    return call.result(cudaErrorInvalidValue);
  }
  sim().free_block(*block);
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **data, size_t bytes, cudaStream_t stream) {
  const Call call("cudaMallocAsync", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (conflicts(stream, "cudaMallocAsync")) return call.result(cudaErrorStreamCaptureUnsupported);
  Block *const block = sim().allocate(stream->context->device, bytes, Block::State::kReserved);
  if (!block) return call.result(cudaErrorMemoryAllocation);
  *data = block->data;
  sim().enqueue(stream, {"an allocation", [block] { sim().set_live(*block); }, nullptr, nullptr, nullptr, false, true});
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **data, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  const Call call("cudaMallocFromPoolAsync", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (conflicts(stream, "cudaMallocFromPoolAsync")) return call.result(cudaErrorStreamCaptureUnsupported);
  if (pool->device != stream->context->device) return call.result(cudaErrorInvalidValue);
  Block *const block = sim().allocate(pool->device, bytes, Block::State::kReserved);
  if (!block) return call.result(cudaErrorMemoryAllocation);
  block->pool = pool;
  pool->used += bytes;
  pool->most_used = std::max(pool->most_used, pool->used);
  pool->reserved = std::max(pool->reserved, pool->used);
  *data = block->data;
  sim().enqueue(stream, {"an allocation", [block] { sim().set_live(*block); }});
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *data, cudaStream_t stream) {
  const Call call("cudaFreeAsync", Call::kCertain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (conflicts(stream, "cudaFreeAsync")) return call.result(cudaErrorStreamCaptureUnsupported);
  Block *const block = sim().find(data);
  if (!block || block->device < 0 || block->data != data || block->state == Block::State::kFreed) {
    sim().report("cudaFreeAsync of " + in_words(data));
    return call.result(cudaErrorInvalidValue);
  }
  sim().enqueue(stream, {"a release",
                         [block] {
                           if (block->state == Block::State::kLive) return sim().free_block(*block);
                           sim().fault(block->device, cudaErrorIllegalAddress, "a release of " + in_words(block->data));
                         },
                         nullptr, nullptr, nullptr, false, true});
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props) {
  const Call call("cudaMemPoolCreate", kPlain, true);
  if (call.refused) return call.result(call.refused);
  if (props->allocType != cudaMemAllocationTypePinned || props->location.type != cudaMemLocationTypeDevice ||
      props->location.id < 0 || props->location.id >= sim().num_devices)
    return call.result(cudaErrorInvalidValue);
  *pool = new CUmemPoolHandle_st;
  (*pool)->device = props->location.id;
  return cudaSuccess;
}

// Memory of the pool that is still in use stays valid.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  const Call call("cudaMemPoolDestroy", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  sim().check_no_launch("cudaMemPoolDestroy");
  for (auto &block : sim().blocks)
    if (block.second.pool == pool) block.second.pool = nullptr;
  delete pool;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
  const Call call("cudaMemPoolSetAttribute", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  if (attribute != cudaMemPoolAttrReleaseThreshold) return call.result(cudaErrorInvalidValue);
  pool->release_threshold = *static_cast<uint64_t *>(value);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  const Call call("cudaDeviceCanAccessPeer", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  *can = device != peer && sim().peers;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count) {
  const Call call("cudaMemPoolSetAccess", kPlain);
  if (call.refused) return call.result(call.refused);
  for (size_t i = 0; i < count; ++i) {
    if (list[i].location.type != cudaMemLocationTypeDevice || list[i].location.id == pool->device || !sim().peers)
      return call.result(cudaErrorInvalidDevice);
    pool->open_to.insert(list[i].location.id);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
  const Call call("cudaMemPoolGetAttribute", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  auto &number = *static_cast<uint64_t *>(value);
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    number = pool->release_threshold;
  } else if (attribute == cudaMemPoolAttrUsedMemCurrent) {
    number = pool->used;
  } else if (attribute == cudaMemPoolAttrReservedMemCurrent) {
    number = std::max(pool->used, std::min(pool->reserved, pool->release_threshold));
  } else if (attribute == cudaMemPoolAttrUsedMemHigh) {
    number = pool->most_used;
  } else {
    return call.result(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address) {
  const Call call("cudaPointerGetAttributes", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  *attributes = {};
  const MemoryKind place = place_of(address);
  const Block *const block = sim().find(address);
  attributes->type = place == MemoryKind::kDevice   ? cudaMemoryTypeDevice
                     : place == MemoryKind::kPinned ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeUnregistered;
  attributes->device = block && block->device >= 0 ? block->device : 0;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  const Call call("cudaMemGetInfo", kPlain);
  if (call.refused) return call.result(call.refused);
  *total_bytes = sim().device_bytes;
  *free_bytes = *total_bytes - std::min(*total_bytes, sim().devices[call.context->device].bytes_in_use);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **data, size_t bytes, unsigned) {
  const Call call("cudaHostAlloc", kPlain, true);
  if (call.refused) return call.result(call.refused);
  sim().check_no_launch("cudaHostAlloc");
  Block *const block = sim().allocate(-1, bytes, Block::State::kLive);
  if (!block) return call.result(cudaErrorMemoryAllocation);
  *data = block->data;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void *data) {
  const Call call("cudaFreeHost", Call::kCertain, true);
  if (call.refused) return call.result(call.refused);
  sim().check_no_launch("cudaFreeHost");
  Block *const block = data ? sim().find(data) : nullptr;
  if (!block || block->device >= 0 || block->data != data) {
    if (data) sim().report("cudaFreeHost of " + in_words(data));
    return call.result(data ? cudaErrorInvalidValue : cudaSuccess);
  }
  sim().free_block(*block);
  return cudaSuccess;
}

// Other devices can access memory of a pool only if that was enabled.
static bool is_open(const void *address, cudaStream_t stream) {
  const Block *const block = sim().find(address);
  const int device = stream->context->device;
  return block->device == device || (block->pool ? block->pool->open_to.count(device) > 0 : sim().peers);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  Call call("cudaMemcpyPeerAsync", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  const Block *const target = sim().find(to), *const source = sim().find(from);
  if (!target || !source || target->device != to_device || source->device != from_device)
    return call.result(cudaErrorInvalidValue);
  sim().enqueue(stream, {"a copy", [=] { copy_bytes(to, MemoryKind::kDevice, from, MemoryKind::kDevice, bytes); }});
  return cudaSuccess;
}

// With pageable memory the caller waits until the stream has done the copy; pinned and device memory are accessed when
// the stream reaches the copy.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  Call call("cudaMemcpyAsync", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  const MemoryKind target = place_of(to), source = place_of(from);
  if (!fits(kind, target, source)) return call.result(cudaErrorInvalidValue);
  const bool pageable = target == MemoryKind::kPageable || source == MemoryKind::kPageable;
  if (target == MemoryKind::kDevice && source == MemoryKind::kDevice &&
      !(is_open(to, stream) && is_open(from, stream))) {
    sim().report("a copy between devices that do not reach each other's memory");
    return call.result(cudaErrorInvalidValue);
  }
  if (pageable && conflicts(stream, "cudaMemcpyAsync of pageable memory"))
    return call.result(cudaErrorStreamCaptureUnsupported);
  if (target != source) sim().host_bytes += bytes;
  const auto done = std::make_shared<Mark>();
  sim().enqueue(stream, {"a copy", [=] { copy_bytes(to, target, from, source, bytes); }, nullptr, done});
  if (!pageable) return cudaSuccess;
  return wait_for(call, stream->context, [&] { return done->done; });
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  const Call call("cudaMemsetAsync", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (place_of(to) != MemoryKind::kDevice) return call.result(cudaErrorInvalidValue);
  sim().enqueue(stream, {"a memset", [=] {
                           if (reach(to, bytes, "a memset writes to")) std::memset(to, value, bytes);
                         }});
  return cudaSuccess;
}

// ---- streams

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  const Call call("cudaStreamCreateWithFlags", kPlain);
  if (call.refused) return call.result(call.refused);
  *stream = new CUstream_st;
  (*stream)->context = call.context;
  sim().streams.insert(*stream);
  return cudaSuccess;
}

// Its queued work still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Call call("cudaStreamDestroy", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (conflicts(stream, "cudaStreamDestroy")) close_capture(*std::shared_ptr<Capture>(stream->capture));
  stream->destroyed = true;
  if (stream->ops.empty() && !stream->busy) {
    sim().streams.erase(stream);
    delete stream;
  }
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Call call("cudaStreamSynchronize", Call::kCertain, true);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (conflicts(stream, "cudaStreamSynchronize")) return call.result(cudaErrorStreamCaptureUnsupported);
  const auto end = std::make_shared<Mark>();
  sim().enqueue(stream, {"the end", nullptr, nullptr, end, nullptr, false, true});
  return wait_for(call, stream->context, [&] { return end->done; });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Call call("cudaStreamQuery", Call::kCertain, true);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (conflicts(stream, "cudaStreamQuery")) return call.result(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t fault = sim().devices[stream->context->device].fault) return call.result(fault);
  return stream->ops.empty() && !stream->busy ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Call call("cudaStreamWaitEvent", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream) || !knows(event)) return call.result(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) return call.result(cudaErrorStreamCaptureMerge);
    stream->capture = event->capture;
    stream->capture->streams.insert(stream);
    stream->captured.insert(stream->captured.end(), event->captured.begin(), event->captured.end());
  } else if (event->mark && !event->mark->done) {
    if (conflicts(stream, "a wait for an event from outside")) return call.result(cudaErrorStreamCaptureIsolation);
    sim().enqueue(stream, {"a wait for an event", nullptr, event->mark});
  }
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  const Call call("cudaLaunchHostFunc", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  Op op{"a function of the host", [=] { function(data); }};
  op.on_host = true;
  sim().enqueue(stream, std::move(op));
  return cudaSuccess;
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  const Call call("cudaEventCreateWithFlags", kPlain);
  if (call.refused) return call.result(call.refused);
  *event = new CUevent_st;
  (*event)->context = call.context;
  sim().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call("cudaEventDestroy", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  if (!knows(event)) return call.result(cudaErrorInvalidResourceHandle);
  sim().events.erase(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Call call("cudaEventRecord", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream) || !knows(event) || event->context != stream->context) {
    return call.result(cudaErrorInvalidResourceHandle);
  }
  event->capture = stream->capture;
  event->captured = stream->captured;
  event->mark = nullptr;
  if (stream->capture) return cudaSuccess;
  event->mark = std::make_shared<Mark>();
  sim().enqueue(stream, {"an event", nullptr, nullptr, event->mark});
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Call call("cudaEventQuery", Call::kCertain, true);
  if (call.refused) return call.result(call.refused);
  if (!knows(event)) return call.result(cudaErrorInvalidResourceHandle);
  if (event->capture) return call.result(cudaErrorCapturedEvent);
  if (!event->mark || event->mark->done) return cudaSuccess;
  if (sim().draw(8) == 0) sim().run_one(call.lock);  // else a loop that only polls would never end
  sim().close_all();
  return cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Call call("cudaEventSynchronize", Call::kCertain, true);
  if (call.refused) return call.result(call.refused);
  if (!knows(event)) return call.result(cudaErrorInvalidResourceHandle);
  if (event->capture) return call.result(cudaErrorCapturedEvent);
  const std::shared_ptr<Mark> mark = event->mark;
  if (!mark) return cudaSuccess;
  return wait_for(call, event->context, [&] { return mark->done; });
}

// ---- capture and graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Call call("cudaStreamBeginCapture", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream)) return call.result(cudaErrorInvalidResourceHandle);
  if (stream->capture) return call.result(cudaErrorIllegalState);
  stream->capture = std::make_shared<Capture>();
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  stream->capture->graph.device = stream->context->device;
  stream->capture->streams = {stream};
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  const Call call("cudaStreamEndCapture", kPlain);
  *graph = nullptr;
  if (!knows(stream) || !stream->capture) return call.result(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) return call.result(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    capture->spoilt = true;
    return call.result(cudaErrorStreamCaptureWrongThread);
  }
  // Every node must come before the end of the stream that is captured.
  std::vector<bool> joined(capture->graph.nodes.size(), false);
  std::vector<size_t> next = stream->captured;
  while (!next.empty()) {
    const size_t node = next.back();
    next.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    const auto &before = capture->graph.nodes[node].after;
    next.insert(next.end(), before.begin(), before.end());
  }
  const bool whole = std::all_of(joined.begin(), joined.end(), [](bool is) { return is; });
  close_capture(*capture);
  if (call.refused) return call.result(call.refused);
  if (capture->spoilt) return call.result(cudaErrorStreamCaptureInvalidated);
  if (!whole) return call.result(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st(std::move(capture->graph));
  sim().captured.insert(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  const Call call("cudaGraphGetNodes", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!sim().captured.count(graph) || nodes)
    return call.result(cudaErrorInvalidValue);  // only their number can be asked for
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long) {
  const Call call("cudaGraphInstantiate", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!sim().captured.count(graph)) return call.result(cudaErrorInvalidValue);
  sim().check_no_launch("cudaGraphInstantiate");
  auto copy = std::make_shared<CUgraph_st>(*graph);
  for (size_t i = 0; i < copy->nodes.size(); ++i)
    for (const size_t earlier : copy->nodes[i].after) copy->nodes[earlier].before.push_back(i);
  *made = new CUgraphExec_st{std::move(copy)};
  sim().graphs.insert(*made);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call call("cudaGraphDestroy", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  if (sim().captured.erase(graph) == 0) return call.result(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

// Callers must not rely on it to wait for queued replays.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const Call call("cudaGraphExecDestroy", Call::kNothing);
  if (call.refused) return call.result(call.refused);
  if (sim().graphs.erase(graph) == 0) return call.result(cudaErrorInvalidValue);
  sim().check_no_launch("cudaGraphExecDestroy");
  if (graph->graph.use_count() > 1) sim().report("cudaGraphExecDestroy of a graph that has not been done");
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) {
  const Call call("cudaGraphUpload", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream) || !sim().graphs.count(graph)) return call.result(cudaErrorInvalidResourceHandle);
  sim().check_no_launch("cudaGraphUpload");
  graph->uploaded = true;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const Call call("cudaGraphLaunch", kPlain);
  if (call.refused) return call.result(call.refused);
  if (!knows(stream) || !sim().graphs.count(graph)) return call.result(cudaErrorInvalidResourceHandle);
  if (graph->graph->device != stream->context->device) return call.result(cudaErrorInvalidValue);
  if (stream->capture) {  // could be captured as a node; not supported
    sim().spoil(*stream, "cudaGraphLaunch into a stream that is captured");
    return call.result(cudaErrorStreamCaptureUnsupported);
  }
  if (!graph->uploaded) sim().check_no_launch("cudaGraphLaunch, which uploads the graph,");
  graph->uploaded = true;
  ++sim().num_launches;
  ++sim().num_replays;
  Op op{"a graph"};
  op.graph = std::make_shared<GraphRun>();
  op.graph->graph = graph->graph;
  for (size_t i = 0; !sim().kernels_are_empty && i < graph->graph->nodes.size(); ++i) {
    op.graph->num_waiting.push_back(graph->graph->nodes[i].after.size());
    if (op.graph->num_waiting[i] == 0) op.graph->ready.push_back(i);
  }
  sim().enqueue(stream, std::move(op));
  return cudaSuccess;
}

// ---- for tests that act as a host

void *cudasim_create_context(int device) {
  const std::lock_guard<std::mutex> lock(sim().mutex);
  auto *const context = new CUctx_st{device, false};
  ++sim().devices[device].num_contexts;
  this_thread().contexts.push_back(context);
  return context;
}

void cudasim_destroy_context(void *given) {
  const std::lock_guard<std::mutex> lock(sim().mutex);
  auto *const context = static_cast<CUctx_st *>(given);
  auto &contexts = this_thread().contexts;
  contexts.erase(std::remove(contexts.begin(), contexts.end(), context), contexts.end());
  --sim().devices[context->device].num_contexts;
  delete context;
}

void *cudasim_current_context(void) {
  const auto &contexts = this_thread().contexts;
  return contexts.empty() ? nullptr : contexts.back();
}

}  // extern "C"
