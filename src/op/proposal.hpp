// SPDX-License-Identifier: Apache-2.0
// Region proposals of a two-stage detector: Proposal for one image, MultiProposal for a batch.
#pragma once

#include "op/boxes.hpp"

namespace cohort {

// Inputs cls_prob (N, 2 * anchors, height, width), background first, bbox_pred (N, 4 * anchors, height, width) and
// im_info, rows of (height, width, scale); outputs (N * rpn_post_nms_top_n, 5) and their scores (.., 1).
struct ProposalAttrs {
  int32_t rpn_pre_nms_top_n;   // not above 0: all
  int32_t rpn_post_nms_top_n;  // per image
  float threshold;
  int32_t rpn_min_size;
  FloatList scales, ratios;  // neither is empty
  int32_t feature_stride;
  bool output_score;
  bool iou_loss;

  int64_t anchors() const { return int64_t(scales.size() * ratios.size()); }
};

}  // namespace cohort
