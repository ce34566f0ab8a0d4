// SPDX-License-Identifier: Apache-2.0
// Offsets of arrays in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "op/checked_length.hpp"

namespace cohort {

// Appends `bytes` to a block of `total` bytes, and returns their offset: the start of a cache line.
inline size_t book(size_t &total, size_t bytes) {
  const size_t offset = (total + 63) / 64 * 64;
  total = offset + bytes;
  return offset;
}

// An array in a block of memory, of as many elements as the product of `lengths`.
template <typename T>
class ScratchArray {
 public:
  ScratchArray(size_t &total, std::initializer_list<int64_t> lengths) : at_(book(total, bytes_of(lengths))) {}
  T *in(void *block) const { return reinterpret_cast<T *>(static_cast<char *>(block) + at_); }

 private:
  static size_t bytes_of(std::initializer_list<int64_t> lengths) {
    int64_t bytes = sizeof(T);
    for (int64_t length : lengths) bytes = checked_times(bytes, length);
    return size_t(bytes);
  }
  size_t at_;
};

}  // namespace cohort
