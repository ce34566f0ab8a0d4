// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_memory.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/cuda_check.hpp"
#include "cuda/cuda_context.hpp"

namespace cohort {
namespace {

// Whether `device` can access the memory of `other`.
bool reaches(int device, int other) {
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, device, other) != cudaSuccess) cudaGetLastError();
  return can != 0;
}

// NCCL and copies between devices need this: a pool is accessible to its own device only by default.
void open_to_others(cudaMemPool_t pool, int device) {
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  for (int other = 0; other < devices; ++other) {
    if (other == device || !reaches(other, device)) continue;
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = other;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CUDA_CHECK(cudaMemPoolSetAccess(pool, &access, 1));
  }
}

}  // namespace

DevicePool::DevicePool(int device) : device_(device) {
  const CurrentDevice current(device_);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  try {
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = device_;
    CUDA_CHECK(cudaMemPoolCreate(&pool_, &props));
    uint64_t keep_all = UINT64_MAX;
    CUDA_CHECK(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all));
    open_to_others(pool_, device_);
  } catch (...) {
    if (pool_) cudaMemPoolDestroy(pool_);
    cudaStreamDestroy(stream_);
    throw;
  }
}

DevicePool::~DevicePool() {
  const CurrentDevice current(device_, std::nothrow);
  const std::lock_guard<std::mutex> alone(launch_order());
  cudaMemPoolDestroy(pool_);
  cudaStreamDestroy(stream_);
}

// The stream carries nothing else, so the wait is short; after it any stream may use the memory.
void *DevicePool::take(size_t bytes) {
  const CurrentDevice current(device_);
  void *data = nullptr;
  cudaError_t status = cudaMallocFromPoolAsync(&data, bytes ? bytes : 1, pool_, stream_);
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream_);
  if (status == cudaSuccess) return data;
  cudaGetLastError();
  const std::string context = text("gpu(", device_, ")");
  if (status != cudaErrorMemoryAllocation)
    throw Error(Code::kDevice, text(context, ": cannot allocate memory: CUDA: ", cudaGetErrorString(status)), context);
  size_t free_bytes = 0, total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) cudaGetLastError();
  throw Error(Code::kOutOfMemory,
              text(context, ": no memory for ", bytes, " bytes; ", free_bytes, " of ", total_bytes, " are free, and ",
                   cached_bytes(), " are cached"),
              context);
}

void DevicePool::give_back(void *data) noexcept {
  const CurrentDevice current(device_, std::nothrow);
  if (cudaFreeAsync(data, stream_) != cudaSuccess || cudaStreamSynchronize(stream_) != cudaSuccess) cudaGetLastError();
}

size_t DevicePool::cached_bytes() const {
  const CurrentDevice current(device_, std::nothrow);
  uint64_t reserved = 0, used = 0;
  if (cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess)
    cudaGetLastError();
  return reserved > used ? size_t(reserved - used) : 0;
}

namespace {

// Pieces whose sizes are powers of two. Pinning and unpinning memory makes devices wait, so free pieces are kept. Those
// beyond a limit are unpinned when another size is pinned: at that time a caller waits anyway, while the thread that
// releases a piece may be the one that polls.
class PinnedPieces {
 public:
  static constexpr int kLeast = 12, kMost = 26;  // 4 KiB, 64 MiB
  static constexpr size_t kMostKept = size_t(256) << 20;

  void *take(int power) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<void *> &free = sizes_[power - kLeast].free;
    if (free.empty()) return nullptr;
    void *const data = free.back();
    free.pop_back();
    kept_ -= size_t(1) << power;
    return data;
  }
  void keep(int power, void *data) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    sizes_[power - kLeast].free.push_back(data);  // there is room: add() has made it
    kept_ += size_t(1) << power;
  }
  // Before a piece is pinned; it will come to keep().
  void add(int power) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Size &size = sizes_[power - kLeast];
    size.free.reserve(size.num_pinned + 1);
    ++size.num_pinned;
  }
  void remove(int power) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    --sizes_[power - kLeast].num_pinned;
  }
  // A free piece, the largest first, if more are kept than the limit allows. Null: none.
  void *take_surplus(size_t to_come) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int power = kMost; power >= kLeast && kept_ + to_come > kMostKept; --power) {
      Size &size = sizes_[power - kLeast];
      if (size.free.empty()) continue;
      void *const data = size.free.back();
      size.free.pop_back();
      --size.num_pinned;
      kept_ -= size_t(1) << power;
      return data;
    }
    return nullptr;
  }

 private:
  struct Size {
    std::vector<void *> free;
    size_t num_pinned = 0;  // free or in use
  };
  std::mutex mutex_;  // guards the members below
  Size sizes_[kMost - kLeast + 1];
  size_t kept_ = 0;
};

PinnedPieces &pinned_pieces() {
  static auto *const instance = new PinnedPieces;  // queues outlive static objects
  return *instance;
}

void *pin(int power) {
  const std::lock_guard<std::mutex> alone(launch_order());
  const size_t bytes = size_t(1) << power;
  while (void *const surplus = pinned_pieces().take_surplus(bytes)) cudaFreeHost(surplus);
  pinned_pieces().add(power);
  void *data = nullptr;
  if (cudaHostAlloc(&data, bytes, cudaHostAllocPortable) == cudaSuccess) return data;
  cudaGetLastError();
  pinned_pieces().remove(power);
  return nullptr;
}

}  // namespace

std::shared_ptr<void> take_pinned(size_t bytes) {
  int power = PinnedPieces::kLeast;
  while (power <= PinnedPieces::kMost && size_t(1) << power < bytes) ++power;
  if (power > PinnedPieces::kMost) return nullptr;
  void *data = pinned_pieces().take(power);
  if (!data) data = pin(power);
  if (!data) return nullptr;
  return std::shared_ptr<void>(data, [power](void *piece) { pinned_pieces().keep(power, piece); });
}

std::shared_ptr<void> need_pinned(size_t bytes, const char *for_what) {
  std::shared_ptr<void> pinned = take_pinned(bytes);
  if (!pinned) throw Error(Code::kOutOfMemory, text("no pinned memory for ", bytes, " bytes of ", for_what), "cuda");
  return pinned;
}

MemoryPlace place_of(const void *address) {
  cudaPointerAttributes attributes{};
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, address));
  return {attributes.type == cudaMemoryTypeUnregistered,
          attributes.type == cudaMemoryTypeDevice ? attributes.device : -1};
}

void copy_between(void *to, const MemoryPlace &target, const void *from, const MemoryPlace &source, size_t bytes,
                  cudaStream_t stream) {
  if (source.device >= 0 && target.device >= 0 && source.device != target.device) {
    CUDA_CHECK(cudaMemcpyPeerAsync(to, target.device, from, source.device, bytes, stream));
  } else {
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  }
}

}  // namespace cohort
