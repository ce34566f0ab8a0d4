// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cohort {

// Division of numbers below 2^31 by a fixed divisor, as a multiplication and a shift.
struct Divisor {
  uint32_t by = 1, factor = 1, shift = 0, spare = 0;  // whole words, as in Elements (elements.cuh)

  Divisor() = default;
  explicit Divisor(int64_t divisor) : by(uint32_t(divisor)) {
    while ((uint64_t(1) << shift) < by) ++shift;
    factor = uint32_t((uint64_t(1) << 32) * ((uint64_t(1) << shift) - by) / by + 1);
  }
  __device__ uint32_t quotient(uint32_t n) const { return (uint32_t((uint64_t(n) * factor) >> 32) + n) >> shift; }
  // The rest; *n becomes the quotient.
  __device__ uint32_t split(uint32_t *n) const {
    const uint32_t whole = *n, many = quotient(whole);
    *n = many;
    return whole - many * by;
  }
};

}  // namespace cohort
