// SPDX-License-Identifier: Apache-2.0
// Whose device is current: ours while we call CUDA, the host's before and after. By the driver's stack of contexts: to
// ask the runtime which device is current, and to set it back, would make a context where the host has none, and lose
// one that is not the runtime's.
#pragma once

#include <mutex>
#include <new>

#include "cuda/cuda_check.hpp"

namespace cohort {

// One of the driver's, as the runtime finds it: no link to libcuda, which only machines with a GPU have. Throws
// kDevice.
void *driver_function(const char *name);

// Held while a sum is given to the streams of several devices, and by calls that may wait for a device (to pin memory,
// to load code): such a call is not to come in between, when one device waits for others that have not been given
// theirs.
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

 private:
  bool pushed_ = false;
};

}  // namespace cohort
