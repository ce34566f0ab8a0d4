// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/box_suppression.hpp"

#include <algorithm>

#include "cpu/simd.hpp"

namespace cohort {
namespace {

// Marks the boxes behind box i that it suppresses.
template <typename C>
struct SuppressByOne {
  static void run(SortedBoxes<C> b, int64_t i, int64_t count, C extra, C least) {
    const Suppressor<C> one(b, i);
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t j = i + 1; j < count; ++j) b.remains[j] = one.suppresses(b, j, extra, least) ? C(0) : b.remains[j];
  }
};

template <typename C>
void suppress_in(const SortedBoxes<C> &boxes, int64_t count, int64_t wanted, C extra, C least) {
  static const auto by_one = best_version<SuppressByOne<C>>();
  std::fill_n(boxes.remains, count, C(1));
  for (int64_t i = 0; i < count && wanted > 0; ++i) {
    if (boxes.remains[i] == 0) continue;
    --wanted;
    by_one(boxes, i, count, extra, least);
  }
}

}  // namespace

void suppress(const SortedBoxes<float> &boxes, int64_t count, int64_t wanted, float extra, float least) {
  suppress_in(boxes, count, wanted, extra, least);
}
void suppress(const SortedBoxes<double> &boxes, int64_t count, int64_t wanted, double extra, double least) {
  suppress_in(boxes, count, wanted, extra, least);
}

}  // namespace cohort
