// SPDX-License-Identifier: Apache-2.0
// Which boxes remain where each suppresses those after it that overlap it: for detections and proposals.
#pragma once

#include <cstdint>

namespace cohort {

// Boxes, best first, an array for each member.
template <typename C>
struct SortedBoxes {
  static constexpr int64_t kArrays = 7;

  SortedBoxes() = default;
  SortedBoxes(C *memory, int64_t most)  // kArrays * most elements
      : left(memory),
        top(left + most),
        right(top + most),
        bottom(right + most),
        area(bottom + most),
        group(area + most),
        remains(group + most) {}

  C *left, *top, *right, *bottom, *area;
  C *group;    // boxes of another group are left alone
  C *remains;  // 1 or 0, set by suppress()
};

// Boxes suppress each other from a shared part of both together of `least` on; `extra`, 0 or 1, is counted to lengths.
// Ends when `wanted` boxes are found to remain: those after them have no meaning then.
void suppress(const SortedBoxes<float> &boxes, int64_t count, int64_t wanted, float extra, float least);
void suppress(const SortedBoxes<double> &boxes, int64_t count, int64_t wanted, double extra, double least);

}  // namespace cohort
