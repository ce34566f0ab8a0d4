// SPDX-License-Identifier: Apache-2.0
// Sorts the first elements by a key (kernels/ranking.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ranking.hpp"

namespace cohort {

// The size, in elements of C, of `count` items in scratch memory.
template <typename C>
constexpr int64_t ranked_elements(int64_t count) {
  return count * int64_t(sizeof(Ranked<C>) / sizeof(C));
}

// Moves the first `kept` of `count` items to the front, in order.
template <bool kAscend, typename Key>
inline void rank(Ranked<Key> *items, int64_t count, int64_t kept) {
  if (kept < count) std::nth_element(items, items + kept, items + count, ranks_before<kAscend, Key>);
  std::sort(items, items + std::min(kept, count), ranks_before<kAscend, Key>);
}

template <typename Key>
inline void rank(bool ascend, Ranked<Key> *items, int64_t count, int64_t kept) {
  ascend ? rank<true>(items, count, kept) : rank<false>(items, count, kept);
}

}  // namespace cohort
