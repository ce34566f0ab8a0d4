// SPDX-License-Identifier: Apache-2.0
// Rows of the data of box_nms: which boxes count, how they are sorted, how they are written. Compiled by nvcc, too.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/sorted_boxes.hpp"
#include "op/box_nms.hpp"

namespace cohort {

// The sizes of the data of box_nms, (..., boxes, width).
struct BoxNmsExtent {
  explicit BoxNmsExtent(const Shape &data)
      : batch(data.size(0, data.rank() - 2)), boxes(data[data.rank() - 2]), width(data[data.rank() - 1]) {}
  int64_t batch, boxes, width;
};

// Throws if the second output of box_nms, which counts boxes in C, cannot hold all their numbers.
template <typename C>
void expect_countable(const BoxNmsExtent &data) {
  if (double(data.boxes) <= 1 / double(std::numeric_limits<C>::epsilon())) return;
  throw Error(Code::kUnsupported, text("data: expected fewer boxes, found ", data.boxes), "data");
}

template <typename C>
struct BoxRows {
  BoxNmsAttrs a;

  COHORT_HOST_DEVICE bool counts(const C *row) const {
    return row[a.score_index] > C(a.valid_thresh) && !(a.id_index >= 0 && row[a.id_index] == C(a.background_id));
  }
  COHORT_HOST_DEVICE void sort_in(const C *row, const SortedBoxes<C> &sorted, int64_t i) const {
    const C *const four = row + a.coord_start;
    const bool by_class = a.id_index >= 0 && !a.force_suppress;
    sorted.set(i, box_of(four, a.in_center), box_area(four, a.in_center),
               by_class ? std::trunc(row[a.id_index]) : C(0));
  }
  // Writes a row of the output from a row of the data, both of `width` numbers.
  COHORT_HOST_DEVICE void write(const C *row, int64_t width, C *to) const {
    for (int64_t k = 0; k < width; ++k) to[k] = row[k];
    C *const four = to + a.coord_start;
    if (a.in_center == a.out_center || four[0] < 0) return;
    const Box<C> box = box_of(four, a.in_center);
    const C center[4] = {(four[0] + four[2]) / 2, (four[1] + four[3]) / 2, four[2] - four[0], four[3] - four[1]};
    const C corner[4] = {box.left, box.top, box.right, box.bottom};
    for (int k = 0; k < 4; ++k) four[k] = a.out_center ? center[k] : corner[k];
  }
};

}  // namespace cohort
