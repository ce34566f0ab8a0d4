// SPDX-License-Identifier: Apache-2.0
// Sums in a fixed order, over partial sums that fill vector registers.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"

namespace cohort {

constexpr int kLanes = 16;

template <typename C>
COHORT_HOST_DEVICE inline C join_lanes(C *partial) {
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) partial[k] += partial[k + width];
  }
  return partial[0];
}

// sum of fn(i) for i < count.
template <typename C, typename Fn>
COHORT_HOST_DEVICE inline C sum_over(int64_t count, Fn &&fn) {
  int64_t i = 0;
  if (count < kLanes) {  // too few to fill a register
    C even = 0, odd = 0;
    for (; i + 2 <= count; i += 2) even += fn(i), odd += fn(i + 1);
    return i < count ? even + fn(i) + odd : even + odd;
  }
  C partial[kLanes] = {};
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) partial[k] += fn(i + k);
  }
  for (int64_t k = 0; i + k < count; ++k) partial[k] += fn(i + k);
  return join_lanes(partial);
}

}  // namespace cohort
