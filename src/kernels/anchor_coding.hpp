// SPDX-License-Identifier: Apache-2.0
// Targets and detections of one anchor, for the two ends of a single-shot detector. Compiled by nvcc, too.
#pragma once

#include "op/box_math.hpp"
#include "op/multibox.hpp"

namespace cohort {

// The role of an anchor in training.
enum class AnchorState : int32_t { kIgnored, kBackground, kObject };

// How far an anchor and an object overlap. It is rounded to float as in MXNet, so that overlaps that are equal there
// are equal here.
template <typename C>
COHORT_HOST_DEVICE inline C anchor_overlap(const Box<C> &anchor, C anchor_area, const Box<C> &object, C object_area) {
  const C shared = shared_area(anchor, object, C(0)), both = anchor_area + object_area - shared;
  return both == 0 ? C(0) : C(float(shared / both));
}
template <typename C>
COHORT_HOST_DEVICE inline C area_of(const Box<C> &box) {
  return (box.right - box.left) * (box.bottom - box.top);
}

// The probability of the background, from scores that lie `step` apart.
template <typename C>
COHORT_HOST_DEVICE inline C background_share(const C *scores, int64_t classes, int64_t step) {
  C top = scores[0], sum = 0;
  for (int64_t k = 1; k < classes; ++k) top = top < scores[k * step] ? scores[k * step] : top;
  for (int64_t k = 0; k < classes; ++k) sum += pointwise::exp_of(scores[k * step] - top);
  return pointwise::exp_of(scores[0] - top) / sum;
}

template <typename C>
struct Variances {
  C at[4];
  explicit Variances(const FloatList &four) : at{C(four[0]), C(four[1]), C(four[2]), C(four[3])} {}
};

// Writes the targets of one anchor. `object`: class and corners of the object that the anchor stands for. Null
// outputs are not written.
template <typename C>
struct AnchorTargets {
  Variances<C> variances;
  C ignore_label;

  COHORT_HOST_DEVICE void write(AnchorState state, const C *anchor, const C *object, C *location, C *mask,
                                C *label) const {
    const bool is_object = state == AnchorState::kObject;
    C code[4] = {0, 0, 0, 0};
    if (is_object) encode_box(anchor, object + 1, code);
    for (int k = 0; k < 4; ++k) {
      if (location) location[k] = code[k] / variances.at[k];
      if (mask) mask[k] = is_object ? C(1) : C(0);
    }
    if (label) *label = is_object ? object[0] + 1 : state == AnchorState::kBackground ? C(0) : ignore_label;
  }
};

// Class and box of the detection at one anchor.
template <typename C>
struct AnchorDetections {
  Variances<C> variances;
  C threshold;
  bool clip;

  // The class of the object, from the output with the largest score behind that of the background; -1: no object.
  COHORT_HOST_DEVICE C class_of(C best, C score) const { return score < threshold ? C(-1) : best - 1; }
  COHORT_HOST_DEVICE Box<C> box(const C *anchor, const C *moves) const {
    const C *const v = variances.at;
    const Box<C> box =
        decode_box(box_of(anchor, false), moves[0] * v[0], moves[1] * v[1], moves[2] * v[2], moves[3] * v[3]);
    return clip ? Box<C>{within_image(box.left), within_image(box.top), within_image(box.right),
                         within_image(box.bottom)}
                : box;
  }

 private:
  COHORT_HOST_DEVICE static C within_image(C at) { return at < 0 ? C(0) : at > 1 ? C(1) : at; }
};

}  // namespace cohort
