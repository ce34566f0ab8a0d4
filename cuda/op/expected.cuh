// SPDX-License-Identifier: Apache-2.0
// Numbers that have to lie in a range: the first that does not is a complaint (cuda_complaints.hpp).
#pragma once

#include "cuda/cuda_complaints.hpp"
#include "cuda/op/elements.cuh"

namespace cohort {

// numbers[first], ... so many of them, are `least` to `most`.
inline void expect_within(const Lane &lane, const Elements &numbers, int64_t first, int64_t count, int64_t least,
                          int64_t most) {
  StepsEnqueued *const steps = StepsEnqueued::now();
  if (!steps || count == 0) return;
  Complaint *const at = steps->place();
  const int64_t step = steps->step();
  for_each(lane, count, [=] __device__(int64_t i) {
    const int64_t found = load_index(numbers, first + i);
    if ((found < least || found > most) && !at->is_whole) atomicMax(&at->behind, (unsigned long long)(count - i));
  });
  for_each(lane, 1, [=] __device__(int64_t) {
    if (at->behind == 0 || at->is_whole) return;
    const int64_t place = first + count - int64_t(at->behind);
    *at = {at->behind, 1, step, place, load_index(numbers, place), least, most};
  });
}

}  // namespace cohort
