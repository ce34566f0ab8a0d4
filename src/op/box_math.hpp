// SPDX-License-Identifier: Apache-2.0
// Geometry of boxes, one box or pair at a time. Compiled by nvcc, too.
#pragma once

#include "op/float_math.hpp"

namespace cohort {

template <typename C>
struct Box {
  C left, top, right, bottom;
};

// `four` holds centre, width and height, or the corners.
template <typename C>
COHORT_HOST_DEVICE inline Box<C> box_of(const C *four, bool center) {
  if (!center) return {four[0], four[1], four[2], four[3]};
  const C half_width = four[2] / 2, half_height = four[3] / 2;
  return {four[0] - half_width, four[1] - half_height, four[0] + half_width, four[1] + half_height};
}

// Returns 0 if a side is negative.
template <typename C>
COHORT_HOST_DEVICE inline C box_area(const C *four, bool center) {
  const C width = center ? four[2] : four[2] - four[0], height = center ? four[3] : four[3] - four[1];
  return width < 0 || height < 0 ? C(0) : width * height;
}

// The length of the intersection of two intervals; `extra` is 1 if the bounds are inclusive pixels, else 0.
template <typename C>
COHORT_HOST_DEVICE inline C shared_length(C low_a, C high_a, C low_b, C high_b, C extra) {
  const C low = low_a > low_b ? low_a : low_b, high = high_a < high_b ? high_a : high_b;
  const C length = high - low + extra;
  return length > 0 ? length : C(0);
}

template <typename C>
COHORT_HOST_DEVICE inline C shared_area(const Box<C> &a, const Box<C> &b, C extra) {
  return shared_length(a.left, a.right, b.left, b.right, extra) *
         shared_length(a.top, a.bottom, b.top, b.bottom, extra);
}

// Encodes `box` relative to `anchor` (both as corners): offset of the centres divided by the anchor's sides, then the
// logarithms of the ratios of the sides.
template <typename C>
COHORT_HOST_DEVICE inline void encode_box(const C *anchor, const C *box, C *code) {
  for (int axis = 0; axis < 2; ++axis) {
    const C side = anchor[axis + 2] - anchor[axis], length = box[axis + 2] - box[axis];
    const C distance = (box[axis] + length / 2) - (anchor[axis] + side / 2);
    code[axis] = distance / side;
    code[axis + 2] = pointwise::log_of(length / side);
  }
}

// The inverse: an anchor (as corners) and a code give a box as corners.
template <typename C>
COHORT_HOST_DEVICE inline Box<C> decode_box(const Box<C> &anchor, C dx, C dy, C dw, C dh) {
  const C width = anchor.right - anchor.left, height = anchor.bottom - anchor.top;
  const C x = dx * width + (anchor.left + width / 2), y = dy * height + (anchor.top + height / 2);
  const C half_width = pointwise::exp_of(dw) * width / 2, half_height = pointwise::exp_of(dh) * height / 2;
  return {x - half_width, y - half_height, x + half_width, y + half_height};
}

}  // namespace cohort
