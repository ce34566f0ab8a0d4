// SPDX-License-Identifier: Apache-2.0
// Merge sort of rows of pairs by their keys, with runs that double from pass to pass: each item finds its place by a
// binary search in the neighbouring run. The order is total, so the result is unique.
#pragma once

#include <utility>

#include "cuda/op/elements.cuh"
#include "kernels/ranking.hpp"

namespace cohort {

template <bool kAscend, typename Key>
__global__ void merge_runs(const Ranked<Key> *from, Ranked<Key> *to, int64_t count, int64_t length, int64_t run) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t row = i / length * length, at = i - row, own = at / run * run;
    const int64_t first = own / (2 * run) * (2 * run), other = own == first ? first + run : first;
    int64_t low = other < length ? other : length, high = other + run < length ? other + run : length;
    const int64_t begin = low;
    const Ranked<Key> item = from[i];
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (ranks_before<kAscend>(from[row + middle], item)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    to[row + first + (at - own) + (low - begin)] = item;
  }
}

// Sorts `rows` rows of `length` pairs each. `spare` has room for as many. Returns the one that holds the result.
template <bool kAscend, typename Key>
Ranked<Key> *sort_rows(const Lane &lane, Ranked<Key> *pairs, Ranked<Key> *spare, int64_t rows, int64_t length) {
  for (int64_t run = 1; rows > 0 && run < length; run *= 2) {
    launch(merge_runs<kAscend, Key>, flat_grid(rows * length), lane.stream, pairs, spare, rows * length, length, run);
    std::swap(pairs, spare);
  }
  return pairs;
}

// The number of keys in a sorted row that are not NaN; NaN comes last.
template <typename Key>
__device__ int64_t count_numbers(const Ranked<Key> *row, int64_t length) {
  int64_t low = 0, high = length;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (row[middle].key == row[middle].key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace cohort
