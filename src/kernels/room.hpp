// SPDX-License-Identifier: Apache-2.0
// Places in one block of memory.
#pragma once

#include <cstddef>

namespace cohort {

// Appends `bytes` behind `total` and returns where they begin: the start of a cache line.
inline size_t book(size_t &total, size_t bytes) {
  const size_t offset = (total + 63) / 64 * 64;
  total = offset + bytes;
  return offset;
}

}  // namespace cohort
