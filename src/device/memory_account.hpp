// SPDX-License-Identifier: Apache-2.0
// Memory of a context: how much is in use, the peak, and the limit. Updated by Device::allocate(); read and set from
// above.
#pragma once

#include <cstddef>
#include <mutex>

#include "base/context.hpp"

namespace cohort {

class MemoryAccount {
 public:
  struct Counts {
    size_t used = 0, peak = 0, limit = 0;
  };

  // Reserves room for an allocation that is about to be made, and releases it on destruction unless keep() was called.
  class Reservation {
   public:
    Reservation(MemoryAccount *account, size_t bytes);  // throws kOutOfMemory beyond the limit
    ~Reservation();
    Reservation(const Reservation &) = delete;
    Reservation &operator=(const Reservation &) = delete;
    void keep();

   private:
    MemoryAccount *account_;  // null: no account, or kept
    const size_t bytes_;
  };

  explicit MemoryAccount(const Context &context) : context_(context) {}
  void release(size_t bytes) {  // inline, because backends call it too
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.used -= bytes;
  }
  void set_limit(size_t bytes);  // 0: none
  void reset_peak();
  Counts counts() const;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  const Context context_;
  mutable std::mutex mutex_;  // guards the rest
  Counts counts_;
  size_t reserved_ = 0;  // reserved but not yet allocated
};

// One account per context for the life of the process, since memory and limits outlive an unused device. Pinned and
// shared host memory count as cpu memory.
MemoryAccount &memory_account(const Context &context);

}  // namespace cohort
