// SPDX-License-Identifier: Apache-2.0
// A pool of objects, of which each of several concurrent calls needs one of its own.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <utility>

namespace cohort {

template <typename T>
class ObjectPool {
 public:
  ObjectPool() = default;
  ObjectPool(const ObjectPool &) = delete;
  ObjectPool &operator=(const ObjectPool &) = delete;
  ~ObjectPool() {
    while (acquire()) {
    }
  }
  // Takes an object out of the pool; null if it is empty.
  std::unique_ptr<T> acquire() {
    for (std::atomic<T *> &place : places_) {
      if (T *const found = place.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<T>(found);
    }
    return nullptr;
  }
  // Puts an object into the pool; destroys it if the pool is full.
  void release(std::unique_ptr<T> object) {
    for (std::atomic<T *> &place : places_) {
      T *nothing = nullptr;
      if (!place.compare_exchange_strong(nothing, object.get(), std::memory_order_release, std::memory_order_relaxed)) {
        continue;
      }
      (void)object.release();
      return;
    }
  }

 private:
  std::array<std::atomic<T *>, 8> places_{};
};

}  // namespace cohort
