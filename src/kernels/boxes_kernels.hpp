// SPDX-License-Identifier: Apache-2.0
// The bodies of op/boxes.hpp, for all backends.
#pragma once

#include "op/boxes.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "op/box_math.hpp"

namespace cohort {
namespace {

template <typename C>
class BoxIou {
 public:
  explicit BoxIou(const StepSpec &spec)
      : center_(spec.attrs_as<BoxIouAttrs>().center),
        lhs_(spec.inputs[0].shape.size() / 4),
        rhs_(spec.inputs[1].shape.size() / 4) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    parallel_for(
        lane, lhs_, 1 + 4096 / (rhs_ + 1), COHORT_BODY(int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            for (int64_t j = 0; j < rhs_; ++j) out[0][i * rhs_ + j] = shared(in[0] + 4 * i, in[1] + 4 * j);
          }
        });
  }

 private:
  COHORT_HOST_DEVICE C shared(const C *a, const C *b) const {
    const C both = shared_area(box_of(a, center_), box_of(b, center_), C(0));
    return both <= 0 ? C(0) : both / (box_area(a, center_) + box_area(b, center_) - both);
  }

  const bool center_;
  const int64_t lhs_, rhs_;
};

template <typename C>
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
    // One box of all places at a time: lists stay with the host.
    for (int64_t k = 0; k < each; ++k) {
      const size_t size = k < int64_t(a_.sizes.size()) ? size_t(k) : 0;
      const size_t ratio = size_t(k) < a_.sizes.size() ? 0 : size_t(k) - a_.sizes.size() + 1;
      const C side = C(a_.sizes[size]), root = std::sqrt(C(a_.ratios[ratio]));
      parallel_for(
          lane, height * width, kCheapGrain, COHORT_LOOP_BODY(int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const C y = (C(i / width) + top) * step_y, x = (C(i % width) + left) * step_x;
              const C half_width = side * C(height) / C(width) * root / 2, half_height = side / root / 2;
              const C box[] = {x - half_width, y - half_height, x + half_width, y + half_height};
              for (int64_t c = 0; c < 4; ++c) {
                const C corner = box[c] < C(0) ? C(0) : box[c] > C(1) ? C(1) : box[c];
                out[0][(i * each + k) * 4 + c] = clip ? corner : box[c];
              }
            }
          });
    }
  }

 private:
  const MultiBoxPriorAttrs a_;
  const int64_t height_, width_;
};

COHORT_KERNEL_BY(backend, _contrib_MultiBoxPrior, make_compute<MultiBoxPrior>);
COHORT_KERNEL_BY(backend, _contrib_box_iou, make_compute<BoxIou>);

}  // namespace
}  // namespace cohort
