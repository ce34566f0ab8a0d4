// SPDX-License-Identifier: Apache-2.0
// Whose device is current: ours while we call CUDA, the host's before and after. By the driver's stack of contexts: to
// ask the runtime which device is current, and to set it back, would make a context where the host has none, and lose
// one that is not the runtime's.
#pragma once

#include <atomic>
#include <mutex>
#include <new>

#include "cuda/cuda_check.hpp"

namespace cohort {

// One of the driver's, as the runtime finds it: no link to libcuda, which only machines with a GPU have. Throws
// kDevice.
void *driver_function(const char *name);

// Held while a sum is given to the streams of several devices, and by calls that may wait for a device (to pin memory,
// to load code, to make graphs and communicators): such a call is not to come in between, when one device waits for
// others that have not been given theirs. Nothing that somebody else owns is let go of while it is held.
std::mutex &launch_order();

// Makes a device current for a scope. Everything that needs a context stands in one.
class CurrentDevice {
 public:
  explicit CurrentDevice(int id);  // throws kDevice
  CurrentDevice(int id,
                std::nothrow_t) noexcept;  // for those who end something, or ask; what they call says what fails
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;
  ~CurrentDevice();

  static int id();  // on this thread; -1: none

 private:
  void push(int id);
  bool pushed_ = false;
  int outer_ = -1;
};

// Calls fn(), which launches code on the current device: alone the first time. The driver loads code when it is first
// launched, finds room for what its threads keep, and may wait for the device to be idle until it can.
template <typename Fn>
void use_code(std::atomic<bool> *used, const Fn &fn) {
  if (used->load(std::memory_order_acquire)) return fn();
  const std::lock_guard<std::mutex> alone(launch_order());
  fn();
  used->store(true, std::memory_order_release);
}

// Of a kernel that was compiled before, by its address.
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
