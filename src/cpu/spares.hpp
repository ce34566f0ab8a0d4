// SPDX-License-Identifier: Apache-2.0
// Things of which each of several calls at once needs one of its own, kept for later calls.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <utility>

namespace cohort {

template <typename T>
class Spares {
 public:
  Spares() = default;
  Spares(const Spares &) = delete;
  Spares &operator=(const Spares &) = delete;
  ~Spares() {
    while (take()) {
    }
  }
  // Null: there is none left. Each call gets another one.
  std::unique_ptr<T> take() {
    for (std::atomic<T *> &place : places_) {
      if (T *const found = place.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<T>(found);
    }
    return nullptr;
  }
  // Where as many as are kept lie here already, it is destroyed.
  void give(std::unique_ptr<T> spare) {
    for (std::atomic<T *> &place : places_) {
      T *nothing = nullptr;
      if (!place.compare_exchange_strong(nothing, spare.get(), std::memory_order_release, std::memory_order_relaxed)) {
        continue;
      }
      (void)spare.release();
      return;
    }
  }

 private:
  std::array<std::atomic<T *>, 8> places_{};
};

}  // namespace cohort
