// SPDX-License-Identifier: Apache-2.0
// CpuBackend: the loops of kernels/compute.hpp on the threads of a CPU queue. A block is one thread.
#pragma once

#include <algorithm>
#include <type_traits>

#include "cpu/op/gemm.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "kernels/compute.hpp"
#include "kernels/partial_sums.hpp"

namespace cohort {

// Calls body(i), or body(i, range) with the range number of parallel_ranges(), for i in [begin, end).
template <typename Body>
struct BlockLoop {
  static void run(const Body &body, int64_t range, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_invocable_v<const Body &, int64_t, int64_t>) {
        body(i, range);
      } else {
        body(i);
      }
    }
  }
};

struct CpuBackend {
  static constexpr int64_t kCheapGrain = cohort::kCheapGrain, kExpensiveGrain = cohort::kExpensiveGrain;

  template <typename Body>
  static void parallel_for(const Lane &lane, int64_t count, int64_t grain, const Body &body) {
    cohort::parallel_for(lane, count, grain, body);
  }
  template <typename Body>
  static void parallel_for_2d(const Lane &lane, int64_t rows, int64_t columns, const Body &body) {
    cohort::parallel_for(lane, rows, 1 + kCheapGrain / (columns + 1), [&body, columns](int64_t begin, int64_t end) {
      const Body own = body;  // a copy: the compiler sees that nothing the body writes is one of its members
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t column = 0; column < columns; ++column) own(row, column);
      }
    });
  }

  // A single call of body runs on the calling thread, so that its products can use all threads.
  template <typename Body>
  static void for_each_block(const Lane &lane, int64_t count, int64_t work, const Body &body) {
    const auto loop = best_version<BlockLoop<Body>>();
    if (count == 1) return loop(body, 0, 0, 1);
    parallel_ranges(lane, count, work < 65536 ? 65536 / (work > 1 ? work : 1) : 1,
                    [&body, loop](int64_t range, int64_t begin, int64_t end) { loop(body, range, begin, end); });
  }
  template <typename Body>
  static void for_each_block_with_slot(const Lane &lane, int64_t count, int64_t work, const Body &body) {
    for_each_block(lane, count, work, body);
  }
  static int64_t num_slots(const StepSpec &spec, int64_t count, int64_t) {
    return std::min<int64_t>(count, spec.num_threads);
  }
  static void block_sync() {}
  template <typename Fn>
  static void block_for(int64_t count, const Fn &fn) {
    fn(int64_t(0), count);
  }
  template <typename C, typename Fn>
  static C block_sum(int64_t count, const Fn &fn) {
    return sum_over<C>(count, fn);
  }

  // As in cpu/op/gemm.hpp: uses one thread if several blocks run.
  template <typename C>
  static void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a, int64_t a_step, const C *b,
                   int64_t b_step, C beta, C *c, int64_t c_step) {
    cohort::gemm(ta, tb, m, n, k, a, a_step, b, b_step, beta, c, c_step);
  }
  template <typename C>
  static void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a, const C *b, C beta, C *c) {
    cohort::gemm(ta, tb, m, n, k, a, b, beta, c);
  }
  // c[i] = op(a[i]) op(b[i]) for each of `count`; op transposes if asked to.
  template <typename C>
  static void batched_gemm(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                           const C *a, const C *b, C *c) {
    if (count == 1) return cohort::gemm(lane, ta, tb, m, n, k, a, b, C(0), c);
    cohort::parallel_for(lane, count, std::max<int64_t>(1, 65536 / (m * n * k + 1)), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        cohort::gemm(ta, tb, m, n, k, a + i * m * k, b + i * k * n, C(0), c + i * m * n);
      }
    });
  }

  template <typename... Parts>
  [[noreturn]] static void fail(const Parts &...parts) {
    throw Error(Code::kExecution, text(parts...));
  }
};

}  // namespace cohort
