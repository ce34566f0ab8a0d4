// SPDX-License-Identifier: Apache-2.0
// Overflow-checked products of axis lengths, which attributes can make arbitrarily large. For shape inference.
#pragma once

#include "base/error.hpp"

namespace cohort {

inline int64_t checked_times(int64_t length, int64_t count) {
  int64_t result = 0;
  if (__builtin_mul_overflow(length, count, &result)) {
    throw Error(Code::kShape, text("output: expected fewer than 2^63 elements, found ", length, " times ", count));
  }
  return result;
}

}  // namespace cohort
