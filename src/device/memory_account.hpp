// SPDX-License-Identifier: Apache-2.0
// How much memory of a context is in use, was at most, and may be. Kept by Device::allocate(); read and set from above.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/context.hpp"

namespace cohort {

class MemoryAccount {
 public:
  struct Counts {
    size_t used = 0, peak = 0, limit = 0;
  };

  bool book(size_t bytes);  // false: that is more than the limit leaves
  void release(size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  void set_limit(size_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }  // 0: none
  void reset_peak() { peak_.store(used_.load(std::memory_order_relaxed), std::memory_order_relaxed); }
  Counts counts() const;

 private:
  std::atomic<size_t> used_{0}, peak_{0}, limit_{0};
};

// The same one as long as the process lives: memory and its limit outlive a device that nobody uses for a while. Pinned
// and shared host memory are those of the cpu.
MemoryAccount &memory_account(const Context &context);

}  // namespace cohort
