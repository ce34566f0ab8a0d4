// SPDX-License-Identifier: Apache-2.0
// The current device: ours while we call CUDA, the host's before and after. Switched through the driver's stack of
// contexts: cudaGetDevice() and cudaSetDevice() would create a context where the host has none, and would lose a host
// context that is not the runtime's.
#pragma once

#include <atomic>
#include <mutex>
#include <new>

#include "cuda/cuda_check.hpp"

namespace cohort {

// A function of the driver, looked up by the runtime: linking to libcuda would need a GPU driver on every machine.
// Throws kDevice.
void *driver_function(const char *name);

// Held while a sum is queued on the streams of several devices, and by calls that may wait for a device (pinning
// memory, loading code, creating graphs and communicators). Without it such a call could wait for a device whose sum
// waits for a device on which the sum has not been queued yet. No object of another owner is released while it is held.
std::mutex &launch_order();

// Makes a device current for a scope. Everything that needs a context stands in one.
class CurrentDevice {
 public:
  explicit CurrentDevice(int id);  // throws kDevice
  CurrentDevice(int id,
                std::nothrow_t) noexcept;  // for clean-up and queries: the calls that follow report the failure
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;
  ~CurrentDevice();

  static int id();  // on this thread; -1: none

 private:
  void push(int id);
  bool pushed_ = false;
  int outer_ = -1;
};

// Calls fn(), which launches code on the current device; the first time under launch_order(). The driver loads code at
// its first launch and allocates local memory for its threads, and may wait until the device is idle for that.
template <typename Fn>
void use_code(std::atomic<bool> *used, const Fn &fn) {
  if (used->load(std::memory_order_acquire)) return fn();
  const std::lock_guard<std::mutex> alone(launch_order());
  fn();
  used->store(true, std::memory_order_release);
}

// The same for a kernel that is compiled into this library, identified by its address.
bool was_used(const void *kernel);
void note_use(const void *kernel);
template <typename Fn>
void use_code(const void *kernel, const Fn &fn) {
  if (was_used(kernel)) return fn();
  const std::lock_guard<std::mutex> alone(launch_order());
  fn();
  note_use(kernel);
}

}  // namespace cohort
