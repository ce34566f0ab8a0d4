// SPDX-License-Identifier: Apache-2.0
// Boxes sorted by score, for the suppression of overlapping boxes in detections and proposals. Compiled by nvcc, too.
#pragma once

#include <cstdint>

#include "op/box_math.hpp"

namespace cohort {

// Boxes, best first, as one array per member.
template <typename C>
struct SortedBoxes {
  static constexpr int64_t kArrays = 7;

  SortedBoxes() = default;
  // Uses memory of kArrays * most elements.
  COHORT_HOST_DEVICE SortedBoxes(C *memory, int64_t most)
      : left(memory),
        top(left + most),
        right(top + most),
        bottom(right + most),
        area(bottom + most),
        group(area + most),
        remains(group + most) {}

  COHORT_HOST_DEVICE void set(int64_t i, const Box<C> &box, C own_area, C own_group) const {
    left[i] = box.left;
    top[i] = box.top;
    right[i] = box.right;
    bottom[i] = box.bottom;
    area[i] = own_area;
    group[i] = own_group;
  }
  COHORT_HOST_DEVICE Box<C> box(int64_t i) const { return {left[i], top[i], right[i], bottom[i]}; }

  C *left, *top, *right, *bottom, *area;
  C *group;    // boxes suppress only boxes of the same group
  C *remains;  // 1 or 0
};

// One box, which suppresses boxes behind it whose intersection over union with it is at least `least`; `extra`, 0 or
// 1, is added to lengths.
template <typename C>
struct Suppressor {
  Box<C> box;
  C area, group;

  COHORT_HOST_DEVICE Suppressor(const SortedBoxes<C> &boxes, int64_t i)
      : box(boxes.box(i)), area(boxes.area[i]), group(boxes.group[i]) {}
  COHORT_HOST_DEVICE bool suppresses(const SortedBoxes<C> &boxes, int64_t j, C extra, C least) const {
    const C shared = shared_area(box, boxes.box(j), extra), both = area + boxes.area[j] - shared;
    return bool(int(group == boxes.group[j]) & int(both > 0) & int(shared / both >= least));
  }
};

}  // namespace cohort
