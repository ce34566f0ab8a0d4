// SPDX-License-Identifier: Apache-2.0
// Copies of lines of some kilobytes: rows of tables, lines of images. From 2 KB on glibc's memcpy uses an instruction
// that takes three times as long as vector loads and stores on many processors.
#pragma once

#include <cstddef>
#include <cstring>

#include "cpu/simd.hpp"

namespace cohort {

struct CopyLine {
  using Function = void (*)(const void *, void *, size_t);
  static void run(const void *from, void *to, size_t bytes) {
    using Vector [[gnu::vector_size(64), gnu::aligned(1), gnu::may_alias]] = char;
    constexpr size_t kAtOnce = 4 * sizeof(Vector);
    const char *x = static_cast<const char *>(from);
    char *y = static_cast<char *>(to);
    for (; bytes >= kAtOnce; bytes -= kAtOnce, x += kAtOnce, y += kAtOnce) {
      const Vector *const parts = reinterpret_cast<const Vector *>(x);
      const Vector first = parts[0], second = parts[1], third = parts[2], fourth = parts[3];
      Vector *const copies = reinterpret_cast<Vector *>(y);
      copies[0] = first, copies[1] = second, copies[2] = third, copies[3] = fourth;
      asm volatile("" ::: "memory");  // keeps the compiler from making a call of memcpy of this loop
    }
    std::memcpy(y, x, bytes);
  }
};

// The fastest function for copies of `bytes`. Source and target may not overlap.
inline CopyLine::Function copy_line_of(size_t bytes) {
  if (bytes >= 512 && bytes <= 131072) return best_version<CopyLine>();
  return [](const void *from, void *to, size_t count) { static_cast<void>(std::memcpy(to, from, count)); };
}

}  // namespace cohort
