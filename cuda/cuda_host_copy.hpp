// SPDX-License-Identifier: Apache-2.0
// Copies between pageable and pinned memory by a host function in a stream. Used by cuda_queue.cc.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace cohort {

// If the device fails, the driver may call the function late or never: once its owner has been released it copies
// nothing, and it stays allocated for the driver.
class HostCopy {
 public:
  // One of the two is `pinned`, which the copy keeps.
  static std::shared_ptr<HostCopy> create(std::shared_ptr<void> pinned, void *to, const void *from, size_t bytes);
  static void CUDART_CB run(void *self);
  // Whether a copy that has not run yet writes any of these bytes.
  static bool will_write(const void *data, size_t bytes);

 private:
  HostCopy(std::shared_ptr<void> pinned, void *to, const void *from, size_t bytes)
      : to_(to), from_(from), bytes_(bytes), pinned_(std::move(pinned)) {}
  static void let_go(HostCopy *copy);

  void *const to_;
  const void *const from_;
  const size_t bytes_;
  std::atomic<bool> has_run_{false};
  std::mutex mutex_;              // guards pinned_, and is held while bytes are copied
  std::shared_ptr<void> pinned_;  // while there is something to copy
  HostCopy *next_left_ = nullptr;
};

}  // namespace cohort
