// SPDX-License-Identifier: Apache-2.0
// Memory of one device from a pool of the driver's, which keeps what is given back: neither to take nor to give back
// waits for the device's work. And pinned memory of the host, in pieces that are used again. For the device and queues.
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

  void *take(size_t bytes);             // throws kOutOfMemory, which says how much there is, or kDevice
  void give_back(void *data) noexcept;  // nothing that is queued uses it any more
  size_t cached_bytes() const;

 private:
  const int device_;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t stream_ = nullptr;  // of taking and giving back alone
};

// Pinned memory, which goes back to the others with the last reference. Null: too much of it is wanted for that, or
// there is none. A device is current.
std::shared_ptr<void> take_pinned(size_t bytes);
std::shared_ptr<void> need_pinned(size_t bytes, const char *for_what);  // throws kOutOfMemory
struct MemoryPlace {
  bool pageable;  // the driver has to copy through memory of its own, which makes the caller wait
  int device;     // -1: the host's
};
MemoryPlace place_of(const void *address);  // throws kDevice
// By the stream, of whichever device: memory of devices that do not reach each other's goes through the host.
void copy_between(void *to, const MemoryPlace &target, const void *from, const MemoryPlace &source, size_t bytes,
                  cudaStream_t stream);

}  // namespace cohort
