// SPDX-License-Identifier: Apache-2.0
// Places in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cohort {

// Appends `bytes` behind `total` and returns where they begin: the start of a cache line.
inline size_t book(size_t &total, size_t bytes) {
  const size_t offset = (total + 63) / 64 * 64;
  total = offset + bytes;
  return offset;
}

// Room for `count` elements in a block.
template <typename T>
class Room {
 public:
  Room(size_t &total, int64_t count) : at_(book(total, size_t(count) * sizeof(T))) {}
  T *in(void *block) const { return reinterpret_cast<T *>(static_cast<char *>(block) + at_); }

 private:
  size_t at_;
};

}  // namespace cohort
