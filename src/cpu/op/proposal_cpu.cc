// SPDX-License-Identifier: Apache-2.0
// Images are shared out.
#include "op/proposal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/op/box_suppression.hpp"
#include "cpu/op/compute_kernel.hpp"
#include "cpu/op/ranked.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/box_math.hpp"

namespace cohort {
namespace {

// Sides are counted in elements: from 0 to 0 is one.
template <typename C>
class Proposal {
 public:
  explicit Proposal(const StepSpec &spec)
      : a_(spec.attrs_as<ProposalAttrs>()),
        images_(spec.inputs[0].shape[0]),
        anchors_(a_.anchors()),
        height_(spec.inputs[0].shape[2]),
        width_(spec.inputs[0].shape[3]),
        count_(anchors_ * height_ * width_),
        most_(a_.rpn_pre_nms_top_n > 0 ? std::min<int64_t>(a_.rpn_pre_nms_top_n, count_) : count_),
        threads_(spec.num_threads) {
    for (float ratio : a_.ratios) {
      for (float scale : a_.scales) add_anchor(ratio, scale);
    }
  }
  size_t extra() const { return size_t(threads_ * per_thread()); }

  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    parallel_ranges(lane, images_, 1, [&](int64_t range, int64_t begin, int64_t end) {
      C *const memory = extra + range * per_thread();
      for (int64_t n = begin; n < end; ++n) one_image(in, out, n, memory);
    });
  }

 private:
  int64_t per_thread() const {
    return whole_lines(ranked_elements<C>(count_) + 4 * count_ + SortedBoxes<C>::kArrays * most_);
  }

  // In float as MXNet does: sides are rounded on the way.
  void add_anchor(float ratio, float scale) {
    const float side = float(a_.feature_stride), center = 0.5f * (side - 1);
    const float columns = std::floor(std::sqrt(std::floor(side * side / ratio)) + 0.5f);
    const float wide = columns * scale, high = std::floor(wide / scale * ratio + 0.5f) * scale;
    base_.push_back({C(center - 0.5f * (wide - 1)), C(center - 0.5f * (high - 1)), C(center + 0.5f * (wide - 1)),
                     C(center + 0.5f * (high - 1))});
  }

  void one_image(const C *const *in, C *const *out, int64_t n, C *memory) const {
    auto *const order = reinterpret_cast<Ranked<C> *>(memory);
    C *const corners = memory + ranked_elements<C>(count_);
    const SortedBoxes<C> sorted(corners + 4 * count_, most_);
    predict(in, n, order, corners);
    rank<false>(order, count_, most_);
    for (int64_t i = 0; i < most_; ++i) {
      const C *const box = corners + 4 * order[i].index;
      sorted.left[i] = box[0];
      sorted.top[i] = box[1];
      sorted.right[i] = box[2];
      sorted.bottom[i] = box[3];
      sorted.area[i] = (box[2] - box[0] + 1) * (box[3] - box[1] + 1);
      sorted.group[i] = 0;
    }
    const int64_t rows = a_.rpn_post_nms_top_n;
    suppress(sorted, most_, rows, C(1), std::nextafter(C(a_.threshold), std::numeric_limits<C>::infinity()));
    C *const to = out[0] + 5 * n * rows, *const scores = out[1] ? out[1] + n * rows : nullptr;
    int64_t row = 0;
    for (int64_t i = 0; i < most_ && row < rows; ++i) {
      if (sorted.remains[i] == 0) continue;
      to[5 * row] = C(n);
      std::copy_n(corners + 4 * order[i].index, 4, to + 5 * row + 1);
      if (scores) scores[row] = order[i].key;
      ++row;
    }
    for (const int64_t found = row; row < rows; ++row) {
      std::copy_n(to + 5 * (row - found), 5, to + 5 * row);
      if (scores) scores[row] = scores[row - found];
    }
  }

  void predict(const C *const *in, int64_t n, Ranked<C> *order, C *corners) const {
    const int64_t plane = height_ * width_;
    const C *const score = in[0] + (2 * n + 1) * anchors_ * plane, *const move = in[1] + 4 * n * anchors_ * plane;
    const C *const info = in[2] + 3 * n;
    const C stride = C(a_.feature_stride), rows = std::trunc(info[0] / stride), columns = std::trunc(info[1] / stride);
    if (!(rows <= C(height_) && columns <= C(width_))) {
      throw Error(Code::kExecution, text("im_info[", n, "]: expected an image of at most ", height_ * a_.feature_stride,
                                         " by ", width_ * a_.feature_stride, ", found ", info[0], " by ", info[1]));
    }
    const C least = C(a_.rpn_min_size) * info[2];
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t a = i % anchors_, x = i / anchors_ % width_, y = i / (anchors_ * width_), at = y * width_ + x;
      const C *const d = move + 4 * a * plane + at;
      const Box<C> &base = base_[size_t(a)];
      const Box<C> anchor = {base.left + C(x) * stride, base.top + C(y) * stride, base.right + C(x) * stride,
                             base.bottom + C(y) * stride};
      const Box<C> moved = a_.iou_loss ? Box<C>{anchor.left + d[0], anchor.top + d[plane], anchor.right + d[2 * plane],
                                                anchor.bottom + d[3 * plane]}
                                       : whole_decoded(anchor, d[0], d[plane], d[2 * plane], d[3 * plane]);
      C *const box = corners + 4 * i;
      box[0] = inside(moved.left, info[1]);
      box[1] = inside(moved.top, info[0]);
      box[2] = inside(moved.right, info[1]);
      box[3] = inside(moved.bottom, info[0]);
      C key = C(y) >= rows || C(x) >= columns ? C(-1) : score[a * plane + at];
      if (box[2] - box[0] + 1 < least || box[3] - box[1] + 1 < least) {
        box[0] -= least / 2;
        box[1] -= least / 2;
        box[2] += least / 2;
        box[3] += least / 2;
        key = -1;
      }
      order[i] = {key, i};
    }
  }

  static Box<C> whole_decoded(const Box<C> &anchor, C dx, C dy, C dw, C dh) {
    const C width = anchor.right - anchor.left + 1, height = anchor.bottom - anchor.top + 1;
    const C x = dx * width + (anchor.left + (width - 1) / 2), y = dy * height + (anchor.top + (height - 1) / 2);
    const C half_width = (pointwise::exp_of(dw) * width - 1) / 2,
            half_height = (pointwise::exp_of(dh) * height - 1) / 2;
    return {x - half_width, y - half_height, x + half_width, y + half_height};
  }
  static C inside(C at, C length) { return std::max(std::min(at, length - 1), C(0)); }

  const ProposalAttrs a_;
  const int64_t images_, anchors_, height_, width_, count_, most_, threads_;
  std::vector<Box<C>> base_;  // anchors around place 0, 0
};

COHORT_KERNEL_BY(cpu, _contrib_Proposal, make_compute<Proposal>);
COHORT_KERNEL_BY(cpu, _contrib_MultiProposal, make_compute<Proposal>);

}  // namespace
}  // namespace cohort
