// SPDX-License-Identifier: Apache-2.0
// What bodies of kernels/compute.hpp find on the CPU.
#pragma once

#include <algorithm>
#include <type_traits>

#include "cpu/op/gemm.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "kernels/compute.hpp"
#include "kernels/partial_sums.hpp"

#define COHORT_BODY [ =, *this ]
#define COHORT_LOOP_BODY [=]
#define COHORT_KERNEL_CODE
#define COHORT_VECTOR_LOOP COHORT_INDEPENDENT_ITERATIONS
#define COHORT_FAILS(...) throw Error(Code::kExecution, text(__VA_ARGS__))

namespace cohort {

template <typename Fn>
struct EachTogether {
  static void run(const Fn &fn, int64_t range, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_invocable_v<const Fn &, int64_t, int64_t>) {
        fn(i, range);
      } else {
        fn(i);
      }
    }
  }
};

// fn(i), or fn(i, range) as parallel_ranges() counts them, for each of `count`, `work` operations each. A single one
// has all threads for its products.
template <typename Fn>
void each_together(const Lane &lane, int64_t count, int64_t work, const Fn &fn) {
  const auto each = best_version<EachTogether<Fn>>();
  if (count == 1) return each(fn, 0, 0, 1);
  parallel_ranges(lane, count, work < 65536 ? 65536 / (work > 1 ? work : 1) : 1,
                  [&fn, each](int64_t range, int64_t begin, int64_t end) { each(fn, range, begin, end); });
}
template <typename Fn>
void each_in_room(const Lane &lane, int64_t count, int64_t work, const Fn &fn) {
  each_together(lane, count, work, fn);
}
inline int64_t rooms(const StepSpec &spec, int64_t count, int64_t) {
  return std::min<int64_t>(count, spec.num_threads);
}
inline void meet() {}
template <typename Fn>
void share_out(int64_t count, const Fn &fn) {
  fn(int64_t(0), count);
}
template <typename C, typename Fn>
C sum_together(int64_t count, const Fn &fn) {
  return sum_over<C>(count, fn);
}

// fn(row, column) for all of a matrix.
template <typename Fn>
void each_place(const Lane &lane, int64_t rows, int64_t columns, const Fn &fn) {
  parallel_for(lane, rows, 1 + kCheapGrain / (columns + 1), [&fn, columns](int64_t begin, int64_t end) {
    const Fn own = fn;  // which nothing that it writes to can be part of
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t column = 0; column < columns; ++column) own(row, column);
    }
  });
}

// c[i] = op(a[i]) op(b[i]) for each of `count`, op transposes if asked to.
template <typename C>
void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a,
                   const C *b, C *c) {
  if (count == 1) return gemm(lane, ta, tb, m, n, k, a, b, C(0), c);
  parallel_for(lane, count, std::max<int64_t>(1, 65536 / (m * n * k + 1)), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gemm(ta, tb, m, n, k, a + i * m * k, b + i * k * n, C(0), c + i * m * n);
  });
}

}  // namespace cohort
