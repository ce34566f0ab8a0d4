// SPDX-License-Identifier: Apache-2.0
// Boxes and scores of the anchors of Proposal and MultiProposal. Sides are counted in elements: a box from 0 to 0 has
// side 1. Compiled by nvcc, too.
#pragma once

#include <cmath>
#include <vector>

#include "op/box_math.hpp"
#include "op/proposal.hpp"

namespace cohort {

// The anchors around place (0, 0). In float, with sides rounded on the way, as in MXNet.
template <typename C>
std::vector<Box<C>> base_anchors(const ProposalAttrs &a) {
  std::vector<Box<C>> all;
  const float side = float(a.feature_stride), center = 0.5f * (side - 1);
  for (float ratio : a.ratios) {
    const float columns = std::floor(std::sqrt(std::floor(side * side / ratio)) + 0.5f);
    for (float scale : a.scales) {
      const float wide = columns * scale, high = std::floor(wide / scale * ratio + 0.5f) * scale;
      all.push_back({C(center - 0.5f * (wide - 1)), C(center - 0.5f * (high - 1)), C(center + 0.5f * (wide - 1)),
                     C(center + 0.5f * (high - 1))});
    }
  }
  return all;
}

template <typename C>
COHORT_HOST_DEVICE inline C proposal_area(const C *box) {
  return (box[2] - box[0] + 1) * (box[3] - box[1] + 1);
}

template <typename C>
struct Proposals {
  C stride, min_size;
  int64_t anchors, height, width;
  bool iou_loss;

  Proposals(const ProposalAttrs &a, const Shape &scores)
      : stride(C(a.feature_stride)),
        min_size(C(a.rpn_min_size)),
        anchors(a.anchors()),
        height(scores[2]),
        width(scores[3]),
        iou_loss(a.iou_loss) {}

  COHORT_HOST_DEVICE int64_t plane() const { return height * width; }
  COHORT_HOST_DEVICE int64_t count() const { return anchors * plane(); }

  // The contents of im_info for an image: its sides, in elements and in places, and the least side of a box.
  struct Image {
    C high, wide, rows, columns, least;
  };
  COHORT_HOST_DEVICE Image image(const C *info) const {
    return {info[0], info[1], std::trunc(info[0] / stride), std::trunc(info[1] / stride), min_size * info[2]};
  }
  COHORT_HOST_DEVICE bool has(const Image &image) const { return image.rows <= C(height) && image.columns <= C(width); }

  // Computes the i-th box, four numbers, from `base`; the anchors of a place come first. Returns its score, or -1 for
  // a box that is too small or off the image. `scores` and `moves` are planes of places.
  COHORT_HOST_DEVICE C predict(const Image &image, const Box<C> &base, const C *scores, const C *moves, int64_t i,
                               C *box) const {
    const int64_t a = i % anchors, x = i / anchors % width, y = i / (anchors * width), at = y * width + x;
    const C *const d = moves + 4 * a * plane() + at;
    const C dx = d[0], dy = d[plane()], dw = d[2 * plane()], dh = d[3 * plane()];
    const Box<C> anchor = {base.left + C(x) * stride, base.top + C(y) * stride, base.right + C(x) * stride,
                           base.bottom + C(y) * stride};
    const Box<C> moved = iou_loss ? Box<C>{anchor.left + dx, anchor.top + dy, anchor.right + dw, anchor.bottom + dh}
                                  : whole_decoded(anchor, dx, dy, dw, dh);
    box[0] = inside(moved.left, image.wide);
    box[1] = inside(moved.top, image.high);
    box[2] = inside(moved.right, image.wide);
    box[3] = inside(moved.bottom, image.high);
    const bool small = box[2] - box[0] + 1 < image.least || box[3] - box[1] + 1 < image.least;
    if (small) {
      box[0] -= image.least / 2;
      box[1] -= image.least / 2;
      box[2] += image.least / 2;
      box[3] += image.least / 2;
    }
    return small || C(y) >= image.rows || C(x) >= image.columns ? C(-1) : scores[a * plane() + at];
  }

 private:
  COHORT_HOST_DEVICE static Box<C> whole_decoded(const Box<C> &anchor, C dx, C dy, C dw, C dh) {
    const C width = anchor.right - anchor.left + 1, height = anchor.bottom - anchor.top + 1;
    const C x = dx * width + (anchor.left + (width - 1) / 2), y = dy * height + (anchor.top + (height - 1) / 2);
    const C half_width = (pointwise::exp_of(dw) * width - 1) / 2,
            half_height = (pointwise::exp_of(dh) * height - 1) / 2;
    return {x - half_width, y - half_height, x + half_width, y + half_height};
  }
  // NaN stays NaN.
  COHORT_HOST_DEVICE static C inside(C at, C length) {
    const C most = length - 1, low = most < at ? most : at;
    return low < 0 ? C(0) : low;
  }
};

}  // namespace cohort
