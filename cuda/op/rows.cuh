// SPDX-License-Identifier: Apache-2.0
// Kernels over rows: one warp per row, whose lanes take every 32nd element. Sums run in lane order, the same at every
// launch.
#pragma once

#include <algorithm>
#include <cmath>

#include "cuda/op/elements.cuh"

namespace cohort {

template <typename C>
__device__ C warp_max(C value) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmax(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

template <typename C>
__device__ C warp_sum(C value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// The sum of fn(i) for i < count, which all lanes of the warp get.
template <typename C, typename Fn>
__device__ C sum_along(int64_t count, const Fn &fn) {
  C sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += 32) sum += fn(i);
  return warp_sum(sum);
}

// The largest fn(i), -inf if there is none; NaN is ignored.
template <typename C, typename Fn>
__device__ C largest_along(int64_t count, const Fn &fn) {
  C top = -C(INFINITY);
  for (int64_t i = threadIdx.x; i < count; i += 32) top = fmax(top, C(fn(i)));
  return warp_max(top);
}

// Calls fn(i) for i < count, distributed over the lanes.
template <typename Fn>
__device__ void each_along(int64_t count, const Fn &fn) {
  for (int64_t i = threadIdx.x; i < count; i += 32) fn(i);
}

template <typename Body>
__global__ void call_for_each_row(Body body, int64_t rows) {
  for (int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y; row < rows;
       row += int64_t(gridDim.x) * blockDim.y) {
    body(row);  // all lanes of a warp have the same row
  }
}

// Calls body(row) for row < rows, by all lanes of a warp.
template <typename Body>
void for_each_row(const Lane &lane, int64_t rows, const Body &body) {
  if (rows == 0) return;
  const Grid grid{dim3(unsigned(std::min<int64_t>((rows + 7) / 8, 132 * 16))), dim3(32, 8)};
  launch(call_for_each_row<Body>, grid, lane.stream, body, rows);
}

// sums[j] = sum over rows of from (rows, columns). A block owns 32 columns; each of its 32 warps adds every 32nd row in
// order, then the warps' sums are added in order.
constexpr int kSumWarps = 32;
template <typename C>
__global__ void add_rows(Elements from, Elements sums, int64_t rows, int64_t columns) {
  COHORT_SHARED(C, partial, [kSumWarps][32]);
  const int64_t column = int64_t(blockIdx.x) * 32 + threadIdx.x;
  C sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < rows; row += kSumWarps) sum += load<C>(from, row * columns + column);
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int warp = 1; warp < kSumWarps; ++warp) sum += partial[warp][threadIdx.x];
  store(sums, column, sum);
}

template <typename C>
void sum_rows(const Lane &lane, const Elements &from, int64_t rows, int64_t columns, const Elements &sums) {
  if (columns == 0) return;
  const Grid grid{dim3(unsigned((columns + 31) / 32)), dim3(32, kSumWarps)};
  launch(add_rows<C>, grid, lane.stream, from, sums, rows, columns);
}

// (outer, length, inner): row r is the elements along the middle axis, `inner` apart, from start(r) on.
struct RowExtent {
  int64_t outer, length, inner;
  COHORT_HOST_DEVICE int64_t rows() const { return outer * inner; }
  COHORT_HOST_DEVICE int64_t size() const { return outer * length * inner; }
  COHORT_HOST_DEVICE int64_t start(int64_t row) const { return row / inner * length * inner + row % inner; }
};

inline RowExtent rows_along(const Shape &shape, int axis) {
  return {shape.size(0, axis), shape[axis], shape.size(axis + 1, shape.rank())};
}

// The number of parts, one thread each, into which rows are cut if they are few and long.
inline int64_t parts_of_rows(const RowExtent &e) {
  constexpr int64_t kBusy = 132 * 512, kLeast = 256;
  return std::clamp<int64_t>(kBusy / std::max<int64_t>(e.rows(), 1), 1, std::max<int64_t>(e.length / kLeast, 1));
}

}  // namespace cohort
