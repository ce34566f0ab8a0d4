// SPDX-License-Identifier: Apache-2.0
#include "op/boxes.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/op/compute_kernel.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
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
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    parallel_for(lane, lhs_, 1 + 4096 / (rhs_ + 1), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < rhs_; ++j) out[0][i * rhs_ + j] = shared(in[0] + 4 * i, in[1] + 4 * j);
      }
    });
  }

 private:
  C shared(const C *a, const C *b) const {
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
  void run(const C *const *, C *const *out, C *, const Lane &) const {
    const C step_y = a_.steps[0] > 0 ? C(a_.steps[0]) : 1 / C(height_);
    const C step_x = a_.steps[1] > 0 ? C(a_.steps[1]) : 1 / C(width_);
    C *to = out[0];
    for (int64_t i = 0; i < height_ * width_; ++i) {
      const C y = (C(i / width_) + C(a_.offsets[0])) * step_y, x = (C(i % width_) + C(a_.offsets[1])) * step_x;
      for (float size : a_.sizes) to = put(x, y, C(size), C(a_.ratios[0]), to);
      for (size_t k = 1; k < a_.ratios.size(); ++k) to = put(x, y, C(a_.sizes[0]), C(a_.ratios[k]), to);
    }
  }

 private:
  C *put(C x, C y, C size, C ratio, C *to) const {
    const C root = std::sqrt(ratio), half_width = size * C(height_) / C(width_) * root / 2,
            half_height = size / root / 2;
    const C box[] = {x - half_width, y - half_height, x + half_width, y + half_height};
    for (C corner : box) *to++ = a_.clip ? std::min(std::max(corner, C(0)), C(1)) : corner;
    return to;
  }

  const MultiBoxPriorAttrs a_;
  const int64_t height_, width_;
};

COHORT_KERNEL_BY(cpu, _contrib_MultiBoxPrior, make_compute<MultiBoxPrior>);
COHORT_KERNEL_BY(cpu, _contrib_box_iou, make_compute<BoxIou>);

}  // namespace
}  // namespace cohort
