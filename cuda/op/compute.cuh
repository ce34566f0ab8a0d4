// SPDX-License-Identifier: Apache-2.0
// What bodies of kernels/compute.hpp find on CUDA. A range is one index, and a thread's.
#pragma once

#include "cuda/op/elements.cuh"
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"

#define COHORT_BODY [ =, *this ] __device__
#define COHORT_LOOP_BODY [=] __device__
#define COHORT_KERNEL_CODE __device__
#define COHORT_VECTOR_LOOP
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

// A block for each.
template <typename Body>
__global__ void call_for_each_block(Body body, int64_t count) {
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) body(i);
}

// A warp for what is small, of which there are many as a rule.
inline int threads_together(int64_t work) { return work <= 32 * 32 * 32 ? 32 : kBlockThreads; }

template <typename Body>
void each_together(const Lane &lane, int64_t count, int64_t work, const Body &body) {
  if (count == 0) return;
  const Grid grid{dim3(unsigned(std::min<int64_t>(count, 132 * 16))), dim3(threads_together(work))};
  launch(call_for_each_block<Body>, grid, lane.stream, body, count);
}

// The same of things that need memory: as many at once as keep the largest device busy.
inline int64_t blocks_with_rooms(int64_t count, int64_t work) {
  return std::min<int64_t>(count, threads_together(work) == 32 ? 132 * 16 : 132 * 2);
}
inline int64_t rooms(const StepSpec &, int64_t count, int64_t work) { return blocks_with_rooms(count, work); }

template <typename Body>
__global__ void call_for_each_room(Body body, int64_t count) {
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) body(i, int64_t(blockIdx.x));
}

template <typename Body>
void each_in_room(const Lane &lane, int64_t count, int64_t work, const Body &body) {
  if (count == 0) return;
  const Grid grid{dim3(unsigned(blocks_with_rooms(count, work))), dim3(threads_together(work))};
  launch(call_for_each_room<Body>, grid, lane.stream, body, count);
}

__device__ inline void meet() { __syncthreads(); }

template <typename Fn>
__device__ void share_out(int64_t count, const Fn &fn) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) fn(i, i + 1);
  meet();
}

// Each thread adds every blockDim.x-th number, and a warp what its threads have.
template <typename C, typename Fn>
__device__ C sum_together(int64_t count, const Fn &fn) {
  COHORT_SHARED(C, partial, [kBlockThreads / 32]);
  C sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += fn(i);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  meet();
  sum = partial[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) sum += partial[warp];
  meet();  // all have read them
  return sum;
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

// c (m, n) = op(a) (m, k) op(b) (k, n) + beta c, within each_together(): rows lie a_step, b_step and c_step elements
// apart.
template <typename C>
__device__ void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a, int64_t a_step, const C *b,
                     int64_t b_step, C beta, C *c, int64_t c_step) {
  share_out(m * n, [&](int64_t place, int64_t) {
    const int64_t i = place / n, j = place % n;
    C *const to = c + i * c_step + j;
    C sum = beta == C(0) ? C(0) : beta * *to;
    for (int64_t l = 0; l < k; ++l) {
      sum += (ta ? a[l * a_step + i] : a[i * a_step + l]) * (tb ? b[j * b_step + l] : b[l * b_step + j]);
    }
    *to = sum;
  });
}
// All dense.
template <typename C>
__device__ void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a, const C *b, C beta, C *c) {
  gemm(ta, tb, m, n, k, a, ta ? m : k, b, tb ? k : n, beta, c, n);
}

}  // namespace cohort
