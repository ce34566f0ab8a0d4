// SPDX-License-Identifier: Apache-2.0
// The two ends of a single-shot detector: its training targets, and its detections. Boxes are corners.
#pragma once

#include "op/boxes.hpp"

namespace cohort {

// Inputs anchor (1, A, 4), label (N, L, 5 or more) and cls_pred (N, classes, A); outputs loc_target and loc_mask
// (N, 4 * A), cls_target (N, A).
struct MultiBoxTargetAttrs {
  float overlap_threshold;
  float ignore_label;
  float negative_mining_ratio;  // negatives per positive; not above 0: all
  float negative_mining_thresh;
  FloatList variances;  // four
};

// Inputs cls_prob (N, classes, A), loc_pred (N, 4 * A) and anchor (1, A, 4); output (N, A, 6).
struct MultiBoxDetectionAttrs {
  bool clip;
  float threshold;
  float nms_threshold;  // in (0, 1]; otherwise no suppression and no sorting
  bool force_suppress;
  FloatList variances;  // four
  int32_t nms_topk;     // not above 0: all
};

}  // namespace cohort
