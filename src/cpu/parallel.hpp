// SPDX-License-Identifier: Apache-2.0
// Parallel loops of CPU kernels, and the thread settings under which kernels run.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

#include "device/kernel.hpp"

namespace cohort {

// Calls fn(range, begin, end) for ranges that cover [0, count), on up to lane.num_threads threads at once, none
// shorter than about `grain`. The ranges depend on count, grain and lane.num_threads only, not on the number of
// threads that really run. Their numbers are below lane.num_threads and below count: use them to divide scratch
// memory, not OpenMP's thread number, because the calling thread may belong to a team of the host. Rethrows an
// exception of fn when all ranges are done.
template <typename Fn>
void parallel_ranges(const Lane &lane, int64_t count, int64_t grain, Fn &&fn) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t num_ranges = std::min<int64_t>(lane.num_threads, count / grain);
  if (num_ranges <= 1) {
    fn(int64_t(0), int64_t(0), count);
    return;
  }
  // Ranges of many elements start at multiples of 64: two threads then write no cache line in common.
  const int64_t unit = count >= num_ranges * 4096 ? 64 : 1;
  const int64_t num_units = (count + unit - 1) / unit, whole = num_units / num_ranges, rest = num_units % num_ranges;
  const auto start = [=](int64_t range) { return std::min(count, (range * whole + std::min(range, rest)) * unit); };
  std::exception_ptr failure;
  // Always uses the whole team: libgomp ends and starts threads when the size of a team changes.
#pragma omp parallel num_threads(lane.num_threads)
  for (int64_t range = omp_get_thread_num(); range < num_ranges; range += omp_get_num_threads()) {
    try {
      fn(range, start(range), start(range + 1));
    } catch (...) {
#pragma omp critical(cohort_parallel_for)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}
template <typename Fn>
void parallel_for(const Lane &lane, int64_t count, int64_t grain, Fn &&fn) {
  parallel_ranges(lane, count, grain, [&](int64_t, int64_t begin, int64_t end) { fn(begin, end); });
}

// Sets the team size of parallel regions (ours and oneDNN's) of the calling thread, for its lifetime.
class ThreadsScope {
 public:
  explicit ThreadsScope(int num_threads) : before_(omp_get_max_threads()), changed_(before_ != num_threads) {
    if (changed_) omp_set_num_threads(num_threads);
  }
  ~ThreadsScope() {
    if (changed_) omp_set_num_threads(before_);
  }
  ThreadsScope(const ThreadsScope &) = delete;
  ThreadsScope &operator=(const ThreadsScope &) = delete;

 private:
  const int before_;
  const bool changed_;
};

// Sets the default floating-point mode for its lifetime: round to nearest, no traps, subnormals kept. Then restores
// the host's mode and exception flags.
class FloatModeScope {
 public:
#if defined(__SSE__)
  FloatModeScope() : before_(_mm_getcsr()) {
    constexpr unsigned kFlags = 0x3fu, kDefault = 0x1f80u;
    if ((before_ & ~kFlags) != kDefault) _mm_setcsr(kDefault);
  }
  ~FloatModeScope() {
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
  }
#else
  FloatModeScope() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatModeScope() { std::fesetenv(&before_); }
#endif
  FloatModeScope(const FloatModeScope &) = delete;
  FloatModeScope &operator=(const FloatModeScope &) = delete;

 private:
#if defined(__SSE__)
  const unsigned before_;
#else
  std::fenv_t before_;
#endif
};

}  // namespace cohort
