// SPDX-License-Identifier: Apache-2.0
// Sorting by comparisons that are the same whatever the numbers (a bitonic network), a vector of them at a time: there
// is no branch for a processor to guess wrong.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cohort {

template <typename Word>  // uint32_t, uint64_t
class SortNetwork {
 public:
  SortNetwork();
  // Of memory for so many words, aligned to kAlignment, it makes use while it sorts `count`: the next power of two.
  static int64_t room(int64_t count);
  static constexpr size_t kAlignment = 64;
  explicit operator bool() const { return sort_; }  // whether this processor has instructions for it
  void sort(Word *words, int64_t count, Word *room) const { sort_(words, count, room); }

 private:
  void (*const sort_)(Word *words, int64_t count, Word *room);
};

extern template class SortNetwork<uint32_t>;
extern template class SortNetwork<uint64_t>;

}  // namespace cohort
