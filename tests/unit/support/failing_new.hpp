// SPDX-License-Identifier: Apache-2.0
// Makes memory run out on request: replaces operator new in a program of one source file. Not under a sanitizer, which
// has its own.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(UNDER_ASAN) || defined(UNDER_TSAN)
#define FAILING_NEW 0
#else
#define FAILING_NEW 1
#endif

namespace failing_new {

inline thread_local bool no_memory = false;                               // every operator new of this thread throws
inline thread_local int64_t num_allocations = 0, failing_allocation = 0;  // of this thread: counts down to the call
                                                                          // that throws

}  // namespace failing_new

#if FAILING_NEW
// Not inlined, because the compiler would pair malloc and free wrongly and warn.
__attribute__((noinline)) void *operator new(size_t bytes) {
  const bool fails = failing_new::no_memory || ++failing_new::num_allocations == failing_new::failing_allocation;
  void *const block = fails ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!block) throw std::bad_alloc();
  return block;
}
__attribute__((noinline)) void operator delete(void *block) noexcept { std::free(block); }
__attribute__((noinline)) void operator delete(void *block, size_t) noexcept { std::free(block); }
#endif
