// SPDX-License-Identifier: Apache-2.0
// The order of elements by a key. It is total, by index where keys are equal and with NaN last, so that the result
// does not depend on the algorithm. Compiled by nvcc, too.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"

namespace cohort {

template <typename Key>
struct Ranked {
  Key key;
  int64_t index;
};

template <bool kAscend, typename Key>
COHORT_HOST_DEVICE inline bool ranks_before(const Ranked<Key> &a, const Ranked<Key> &b) {
  if (kAscend ? a.key < b.key : a.key > b.key) return true;
  if (kAscend ? b.key < a.key : b.key > a.key) return false;
  const bool a_nan = a.key != a.key, b_nan = b.key != b.key;
  return a_nan != b_nan ? b_nan : a.index < b.index;
}

}  // namespace cohort
