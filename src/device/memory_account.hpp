// SPDX-License-Identifier: Apache-2.0
// How much memory of a context is in use, was at most, and may be. Kept by Device::allocate(); read and set from above.
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

  // Room for memory that is about to be obtained, given back unless that is kept.
  class Booking {
   public:
    Booking(MemoryAccount *account, size_t bytes);  // kOutOfMemory: beyond the limit
    ~Booking();
    Booking(const Booking &) = delete;
    Booking &operator=(const Booking &) = delete;
    void keep();

   private:
    MemoryAccount *account_;  // null: there is none, or it was kept
    const size_t bytes_;
  };

  explicit MemoryAccount(const Context &context) : context_(context) {}
  void release(size_t bytes) {  // here: backends call it, too
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
  size_t booked_ = 0;  // beside what is used
};

// The same one as long as the process lives: memory and its limit outlive a device that nobody uses for a while. Pinned
// and shared host memory are those of the cpu.
MemoryAccount &memory_account(const Context &context);

}  // namespace cohort
