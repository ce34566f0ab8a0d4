// SPDX-License-Identifier: Apache-2.0
// Kernels over rows of neighbouring elements whose type the compiler knows: a warp or, for long rows, a block per row,
// whose threads load whole vectors. Sums have an order that depends on the length alone. For rows of other kinds there
// is rows.cuh.
#pragma once

#include <algorithm>

#include "cuda/op/compute_type.cuh"
#include "cuda/op/rows.cuh"

namespace cohort {

// The threads of one row, which make each call together. Each array is given by where its row begins, and fn gets the
// elements of the arrays at one place, in the compute type.
template <typename T>
struct RowThreads {
  using C = ComputeOf<T>;
  static constexpr int kSize = Vector<T>::kSize;
  int64_t length;
  bool aligned;  // addresses, so that vectors can be loaded

  __device__ Vector<T> load(const T *from) const {
    if (aligned) return load_vector(from);
    Vector<T> loaded;
    for (int v = 0; v < kSize; ++v) loaded.at[v] = from[v];
    return loaded;
  }
  __device__ void store(T *to, const Vector<T> &vector) const {
    if (aligned) return store_vector(to, vector);
    for (int v = 0; v < kSize; ++v) to[v] = vector.at[v];
  }

  // to[i] = fn(i, elements...)
  template <typename Fn, typename... From>
  __device__ void write(T *to, const Fn &fn, const From *...from) const {
    for (int64_t at = int64_t(threadIdx.x) * kSize; at < length; at += int64_t(blockDim.x) * kSize) {
      write_vector(to + at, at, fn, load(from + at)...);
    }
  }
  // The sum of fn(elements...).
  template <typename Fn, typename... From>
  __device__ C sum(const Fn &fn, const From *...from) const {
    return joined(
        C(0), [](C a, C b) { return a + b; }, fn, from...);
  }
  // The largest fn(elements...); NaN is ignored.
  template <typename Fn, typename... From>
  __device__ C largest(const Fn &fn, const From *...from) const {
    return joined(
        -C(INFINITY), [](C a, C b) { return fmax(a, b); }, fn, from...);
  }

 private:
  template <typename Fn, typename... Vectors>
  __device__ void write_vector(T *to, int64_t at, const Fn &fn, const Vectors &...vectors) const {
    Vector<T> made;
    for (int v = 0; v < kSize; ++v) made.at[v] = from_compute<T>(fn(at + v, to_compute(vectors.at[v])...));
    store(to, made);
  }
  // join over fn(elements...): of a thread, of the lanes of a warp, of the warps in their order.
  template <typename Join, typename Fn, typename... From>
  __device__ C joined(C own, const Join &join, const Fn &fn, const From *...from) const {
    for (int64_t at = int64_t(threadIdx.x) * kSize; at < length; at += int64_t(blockDim.x) * kSize) {
      own = joined_vector(own, join, fn, load(from + at)...);
    }
    for (int offset = 16; offset > 0; offset /= 2) own = join(own, __shfl_xor_sync(0xffffffffu, own, offset));
    if (blockDim.x == 32) return own;
    COHORT_SHARED(C, all, [kBlockThreads / 32]);
    if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = own;
    __syncthreads();
    C result = all[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) result = join(result, all[warp]);
    __syncthreads();  // before the next call writes
    return result;
  }
  template <typename Join, typename Fn, typename... Vectors>
  __device__ C joined_vector(C own, const Join &join, const Fn &fn, const Vectors &...vectors) const {
    for (int v = 0; v < kSize; ++v) own = join(own, fn(to_compute(vectors.at[v])...));
    return own;
  }
};

template <typename T, typename Body>
__global__ void call_for_row_vectors(Body body, int64_t rows, RowThreads<T> threads) {
  for (int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y; row < rows;
       row += int64_t(gridDim.x) * blockDim.y) {
    body(threads, row);
  }
}

// Whether rows of `e` are of this kind.
inline bool are_vectors(const RowExtent &e, Dtype dtype) {
  return e.inner == 1 && size_t(e.length) * dtype_size(dtype) % 16 == 0;
}

// Calls body(threads, row) for row < rows, for rows of `length` elements. `arrays`: all whose rows are loaded or
// stored.
template <typename T, typename Body>
void for_each_row_of_vectors(const Lane &lane, int64_t rows, int64_t length, std::initializer_list<const void *> arrays,
                             const Body &body) {
  if (rows == 0) return;
  constexpr int64_t kEach = 2;  // vectors of a thread, at least
  const int64_t wanted = length / (Vector<T>::kSize * kEach);
  const unsigned across = wanted >= kBlockThreads ? kBlockThreads : wanted >= 128 ? 128 : wanted >= 64 ? 64 : 32;
  const unsigned down = across == 32 ? 8 : 1;  // threads of longer rows wait for each other
  const Grid grid{dim3(unsigned(std::min<int64_t>((rows + down - 1) / down, 132 * 16))), dim3(across, down)};
  launch(call_for_row_vectors<T, Body>, grid, lane.stream, body, rows, RowThreads<T>{length, can_be_vectors(arrays)});
}

// fn(T()) for the floating type of elements.
template <typename Fn>
void with_row_type(Dtype dtype, const Fn &fn) {
  if (dtype == Dtype::kFloat64) return fn(double());
  if (dtype == Dtype::kFloat16) return fn(Float16());
  if (dtype == Dtype::kBfloat16) return fn(Bfloat16());
  fn(float());
}

}  // namespace cohort
