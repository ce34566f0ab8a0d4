// SPDX-License-Identifier: Apache-2.0
// What bodies of kernels/compute.hpp find on CUDA. A range is one index, and a thread's.
#pragma once

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"

#define COHORT_BODY [ =, *this ] __device__
#define COHORT_LOOP_BODY [=] __device__
#define COHORT_KERNEL_CODE __device__
#define COHORT_FAILS(...) ((void)0)

namespace cohort {

constexpr int64_t kCheapGrain = 1, kExpensiveGrain = 1;  // of no meaning here

template <typename Body>
struct OneIndex {
  Body body;
  __device__ void operator()(int64_t i) const { body(i, i + 1); }
};

template <typename Body>
void parallel_for(const Lane &lane, int64_t count, int64_t, const Body &body) {
  for_each(lane, count, OneIndex<Body>{body});
}

template <typename Fn>
void each_of_one(const Lane &lane, const Fn &fn) {
  for_each(lane, 1, fn);
}

template <typename Fn>
struct OnePlace {
  Fn fn;
  int64_t columns;
  __device__ void operator()(int64_t i) const { fn(i / columns, i % columns); }
};

template <typename Fn>
void each_place(const Lane &lane, int64_t rows, int64_t columns, const Fn &fn) {
  for_each(lane, rows * columns, OnePlace<Fn>{fn, columns});
}

// c[i] = op(a[i]) op(b[i]) for each of `count`: row-major and dense, op transposes if asked to
// (matrix_product_cuda.cu).
void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                   const float *b, float *c);
void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a,
                   const double *b, double *c);

// c (m, n) = op(a) (m, k) op(b) (k, n) + beta c, by one thread.
template <typename C>
__device__ void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a, const C *b, C beta, C *c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      C sum = beta == C(0) ? C(0) : beta * c[i * n + j];
      for (int64_t l = 0; l < k; ++l) sum += (ta ? a[l * m + i] : a[i * k + l]) * (tb ? b[j * k + l] : b[l * n + j]);
      c[i * n + j] = sum;
    }
  }
}

}  // namespace cohort
