// SPDX-License-Identifier: Apache-2.0
// One instance per process, created on first use and never destroyed, so that it outlives static objects. A forked
// child creates a new one: the old one's threads do not exist there, and its locked mutexes would never be unlocked.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

namespace cohort {

namespace detail {
template <typename T>
struct PerProcess {
  static inline std::atomic<T *> known{nullptr};
};
}  // namespace detail

// Null before the first use.
template <typename T>
T *known_per_process() {
  return detail::PerProcess<T>::known.load(std::memory_order_acquire);
}

template <typename T>
T &per_process() {
  if (T *const known = known_per_process<T>()) return *known;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { detail::PerProcess<T>::known.store(nullptr); });
  (void)registered;
  auto made = std::make_unique<T>();
  T *known = nullptr;
  if (detail::PerProcess<T>::known.compare_exchange_strong(known, made.get())) return *made.release();
  return *known;
}

}  // namespace cohort
