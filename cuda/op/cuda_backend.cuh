// SPDX-License-Identifier: Apache-2.0
// CudaBackend: the loops of kernels/compute.hpp as launches. A range of parallel_for() and of block_for() is one index,
// which a thread has.
#pragma once

#include "cuda/op/elements.cuh"
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"

namespace cohort {

template <typename Body>
struct OneIndex {
  Body body;
  __device__ void operator()(int64_t i) const { body(i, i + 1); }
};

template <typename Body>
struct OneElement {
  Body body;
  int64_t columns;
  __device__ void operator()(int64_t i) const { body(i / columns, i % columns); }
};

template <typename Body>
__global__ void call_for_each_block(Body body, int64_t count) {
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) body(i);
}
template <typename Body>
__global__ void call_for_each_block_with_slot(Body body, int64_t count) {
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) body(i, int64_t(blockIdx.x));
}

// c[i] = op(a[i]) op(b[i]) for each of `count`: row-major and dense, op transposes if asked to
// (matrix_product_cuda.cu).
void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                   const float *b, float *c);
void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a,
                   const double *b, double *c);

struct CudaBackend {
  static constexpr int64_t kCheapGrain = 1, kExpensiveGrain = 1;  // not read

  template <typename Body>
  static void parallel_for(const Lane &lane, int64_t count, int64_t, const Body &body) {
    for_each(lane, count, OneIndex<Body>{body});
  }
  template <typename Body>
  static void parallel_for_2d(const Lane &lane, int64_t rows, int64_t columns, const Body &body) {
    for_each(lane, rows * columns, OneElement<Body>{body, columns});
  }

  // A warp for little work: there is much of it as a rule.
  static int block_threads(int64_t work) { return work <= 32 * 32 * 32 ? 32 : kBlockThreads; }
  template <typename Body>
  static void for_each_block(const Lane &lane, int64_t count, int64_t work, const Body &body) {
    if (count == 0) return;
    const Grid grid{dim3(unsigned(std::min<int64_t>(count, 132 * 16))), dim3(block_threads(work))};
    launch(call_for_each_block<Body>, grid, lane.stream, body, count);
  }
  // As many slots as keep the largest device busy.
  static int64_t num_slots(int64_t count, int64_t work) {
    return std::min<int64_t>(count, block_threads(work) == 32 ? 132 * 16 : 132 * 2);
  }
  static int64_t num_slots(const StepSpec &, int64_t count, int64_t work) { return num_slots(count, work); }
  template <typename Body>
  static void for_each_block_with_slot(const Lane &lane, int64_t count, int64_t work, const Body &body) {
    if (count == 0) return;
    const Grid grid{dim3(unsigned(num_slots(count, work))), dim3(block_threads(work))};
    launch(call_for_each_block_with_slot<Body>, grid, lane.stream, body, count);
  }

  __device__ static void block_sync() { __syncthreads(); }
  template <typename Fn>
  __device__ static void block_for(int64_t count, const Fn &fn) {
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) fn(i, i + 1);
    block_sync();
  }
  // Each thread adds every blockDim.x-th number, a warp adds up its threads' sums, and all threads those of the warps.
  template <typename C, typename Fn>
  __device__ static C block_sum(int64_t count, const Fn &fn) {
    COHORT_SHARED(C, partial, [kBlockThreads / 32]);
    C sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += fn(i);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    block_sync();
    sum = partial[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) sum += partial[warp];
    block_sync();  // all have read them
    return sum;
  }

  // c (m, n) = op(a) (m, k) op(b) (k, n) + beta c by the threads of a block; rows lie a_step, b_step and c_step
  // elements apart.
  template <typename C>
  __device__ static void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a, int64_t a_step, const C *b,
                              int64_t b_step, C beta, C *c, int64_t c_step) {
    block_for(m * n, [&](int64_t place, int64_t) {
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
  __device__ static void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a, const C *b, C beta, C *c) {
    gemm(ta, tb, m, n, k, a, ta ? m : k, b, tb ? k : n, beta, c, n);
  }
  template <typename C>
  static void batched_gemm(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                           const C *a, const C *b, C *c) {
    multiply_each(lane, count, ta, tb, m, n, k, a, b, c);
  }

  template <typename... Parts>
  COHORT_HOST_DEVICE static void fail(const Parts &...) {}
};

}  // namespace cohort
