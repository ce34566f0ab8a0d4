// SPDX-License-Identifier: Apache-2.0
// Elements in the order of a key. The order is a total one, by index where keys are equal and with NaN last, so that
// the result does not depend on how it is found.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cohort {

template <typename Key>
struct Ranked {
  Key key;
  int64_t index;
};

// The elements of C that `count` items take in scratch memory.
template <typename C>
constexpr int64_t ranked_elements(int64_t count) {
  return count * int64_t(sizeof(Ranked<C>) / sizeof(C));
}

template <bool kAscend, typename Key>
inline bool ranks_before(const Ranked<Key> &a, const Ranked<Key> &b) {
  if (kAscend ? a.key < b.key : a.key > b.key) return true;
  if (kAscend ? b.key < a.key : b.key > a.key) return false;
  const bool a_nan = a.key != a.key, b_nan = b.key != b.key;
  return a_nan != b_nan ? b_nan : a.index < b.index;
}

// Brings the first `kept` of `count` items to the front, in order.
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
