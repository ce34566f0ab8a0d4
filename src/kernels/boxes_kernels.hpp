// SPDX-License-Identifier: Apache-2.0
// Kernels of op/boxes.hpp.
#pragma once

#include "op/boxes.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "op/box_math.hpp"

namespace cohort {
namespace {

// Transposes the boxes of the right side first, coordinate by coordinate: the inner loop then reads each coordinate
// contiguously.
template <typename Backend, typename C>
class BoxIou {
 public:
  explicit BoxIou(const StepSpec &spec)
      : center_(spec.attrs_as<BoxIouAttrs>().center),
        lhs_(spec.inputs[0].shape.size() / 4),
        rhs_(spec.inputs[1].shape.size() / 4) {}
  size_t extra() const { return size_t(5 * rhs_); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    C *const left = extra, *const top = left + rhs_, *const right = top + rhs_, *const bottom = right + rhs_;
    C *const areas = bottom + rhs_;
    Backend::parallel_for(lane, rhs_, Backend::kCheapGrain, [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const Box<C> box = box_of(in[1] + 4 * j, center_);
        left[j] = box.left;
        top[j] = box.top;
        right[j] = box.right;
        bottom[j] = box.bottom;
        areas[j] = box_area(in[1] + 4 * j, center_);
      }
    });
    Backend::parallel_for(lane, lhs_, 1 + Backend::kCheapGrain / (rhs_ + 1),
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              const Box<C> box = box_of(in[0] + 4 * i, center_);
                              const C area = box_area(in[0] + 4 * i, center_);
                              C *const to = out[0] + i * rhs_;
                              for (int64_t j = 0; j < rhs_; ++j) {
                                const C both = shared_area(box, Box<C>{left[j], top[j], right[j], bottom[j]}, C(0));
                                const C ratio = both / (area + areas[j] - both);
                                to[j] = both <= 0 ? C(0) : ratio;
                              }
                            }
                          });
  }

 private:
  const bool center_;
  const int64_t lhs_, rhs_;
};

template <typename Backend, typename C>
class MultiBoxPrior {
 public:
  explicit MultiBoxPrior(const StepSpec &spec)
      : a_(spec.attrs_as<MultiBoxPriorAttrs>()), height_(spec.inputs[0].shape[2]), width_(spec.inputs[0].shape[3]) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const C step_y = a_.steps[0] > 0 ? C(a_.steps[0]) : 1 / C(height_);
    const C step_x = a_.steps[1] > 0 ? C(a_.steps[1]) : 1 / C(width_);
    const C left = C(a_.offsets[1]), top = C(a_.offsets[0]);
    const int64_t height = height_, width = width_, each = int64_t(a_.sizes.size() + a_.ratios.size()) - 1;
    const bool clip = a_.clip;
    // One launch per box shape, for all positions: the lists of sizes and ratios stay on the host.
    for (int64_t k = 0; k < each; ++k) {
      const size_t size = k < int64_t(a_.sizes.size()) ? size_t(k) : 0;
      const size_t ratio = size_t(k) < a_.sizes.size() ? 0 : size_t(k) - a_.sizes.size() + 1;
      const C side = C(a_.sizes[size]), root = std::sqrt(C(a_.ratios[ratio]));
      const C half_width = side * C(height) / C(width) * root / 2, half_height = side / root / 2;
      Backend::parallel_for_2d(lane, height, width, [=] COHORT_DEVICE(int64_t row, int64_t column) {
        const C y = (C(row) + top) * step_y, x = (C(column) + left) * step_x;
        const C box[] = {x - half_width, y - half_height, x + half_width, y + half_height};
        C *const to = out[0] + ((row * width + column) * each + k) * 4;
        for (int64_t c = 0; c < 4; ++c) {
          const C corner = box[c] < C(0) ? C(0) : box[c] > C(1) ? C(1) : box[c];
          to[c] = clip ? corner : box[c];
        }
      });
    }
  }

 private:
  const MultiBoxPriorAttrs a_;
  const int64_t height_, width_;
};

template <typename Backend>
void register_boxes_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_contrib_MultiBoxPrior", make_compute<Backend, MultiBoxPrior>);
  table.add("_contrib_box_iou", make_compute<Backend, BoxIou>);
}

}  // namespace
}  // namespace cohort
