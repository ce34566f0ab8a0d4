// SPDX-License-Identifier: Apache-2.0
// Memory of one device from a pool of the driver, which keeps freed memory: neither allocating nor freeing waits for
// the device's work. And pinned host memory in pieces that are reused. For the device and its queues.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

namespace cohort {

class DevicePool {
 public:
  explicit DevicePool(int device);
  ~DevicePool();
  DevicePool(const DevicePool &) = delete;
  DevicePool &operator=(const DevicePool &) = delete;

  void *take(size_t bytes);             // throws kOutOfMemory, with the amount of free memory, or kDevice
  void give_back(void *data) noexcept;  // no queued work may use it any more
  size_t cached_bytes() const;

 private:
  const int device_;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t stream_ = nullptr;  // used for allocating and freeing alone
};

// Pinned memory that becomes reusable with its last reference. Null if a piece of that size is not kept, or if there is
// no memory. A device must be current.
std::shared_ptr<void> take_pinned(size_t bytes);
std::shared_ptr<void> need_pinned(size_t bytes, const char *for_what);  // throws kOutOfMemory
struct MemoryPlace {
  bool pageable;  // the driver copies through its own memory, and the caller waits
  int device;     // -1: the host's
};
MemoryPlace place_of(const void *address);  // throws kDevice
// Copies in the stream, between any devices: if they cannot access each other's memory, the copy goes through the host.
void copy_between(void *to, const MemoryPlace &target, const void *from, const MemoryPlace &source, size_t bytes,
                  cudaStream_t stream);

}  // namespace cohort
