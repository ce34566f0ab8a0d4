// SPDX-License-Identifier: Apache-2.0
// Reduces a row over lanes, whose partial results are combined in the same order whatever the instruction set.
// join(a, b) combines b into a; it takes elements, and vectors of them.
#pragma once

#include <cstdint>
#include <cstring>

namespace cohort {

constexpr int64_t kLongRow = 512;  // elements from which a row uses several registers instead of one

// kLanes is a power of two, 16 or more.
template <int kLanes, typename C, typename Join>
inline C join_lanes(C (&partial)[kLanes], const Join &join) {
  for (int width = kLanes / 2; width >= 16; width /= 2) {
    for (int k = 0; k < width; ++k) join(partial[k], partial[k + width]);
  }
  // Combines halves of 16, of 8, of 4 and of 2, in a register.
  using Lanes [[gnu::vector_size(16 * sizeof(C))]] = C;
  Lanes all;
  std::memcpy(&all, partial, sizeof all);
  join(all, Lanes(__builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)));
  join(all, Lanes(__builtin_shufflevector(all, all, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3)));
  join(all, Lanes(__builtin_shufflevector(all, all, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1)));
  C result = all[0];
  join(result, C(all[1]));
  return result;
}

template <int kLanes, typename C, typename Join>
inline C joined(const C *x, int64_t count, C result, const Join &join) {
  int64_t i = 0;
  if (count >= kLanes) {
    C partial[kLanes];
    for (int k = 0; k < kLanes; ++k) partial[k] = x[k];
    for (i = kLanes; i + kLanes <= count; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) join(partial[k], x[i + k]);
    }
    result = join_lanes(partial, join);
  }
  for (; i < count; ++i) join(result, x[i]);
  return result;
}

struct JoinLarger {
  template <typename V>
  void operator()(V &largest, const V &value) const {
    largest = value > largest ? value : largest;
  }
};
struct JoinSum {
  template <typename V>
  void operator()(V &sum, const V &value) const {
    sum += value;
  }
};

}  // namespace cohort
