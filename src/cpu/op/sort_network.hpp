// SPDX-License-Identifier: Apache-2.0
// Sorts by a bitonic network, whose comparisons do not depend on the numbers, with whole vectors at a time: there are
// no branches that a processor could mispredict.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cohort {

template <typename Word>  // uint32_t, uint64_t
class SortNetwork {
 public:
  SortNetwork();
  // The number of words that sort() on `count` words needs, aligned to kAlignment: the next power of two.
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
