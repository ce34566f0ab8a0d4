// SPDX-License-Identifier: Apache-2.0
// Kernels of space_to_depth and depth_to_space.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/strided_copy.hpp"
#include "op/space_to_depth.hpp"

namespace cohort {
namespace {

// Moves images (N, C, h * b, w * b) to (N, b * b * C, h, w), or back. Each is the backward step of the other.
template <bool kToDepth>
class MoveBlocks final : public Kernel {
 public:
  explicit MoveBlocks(const StepSpec &spec) {
    const Shape &deep = (kToDepth ? spec.outputs : spec.inputs)[0].shape;
    const int64_t b = spec.attrs_as<BlockAttrs>().block_size;
    const int64_t n = deep[0], c = deep[1] / (b * b), h = deep[2], w = deep[3];
    struct Both {
      int64_t length, flat, deep;
    };
    const Both axes[] = {{n, c * h * b * w * b, b * b * c * h * w},
                         {c, h * b * w * b, h * w},
                         {h, b * w * b, w},
                         {b, w * b, b * c * h * w},
                         {w, b, 1},
                         {b, 1, c * h * w}};
    std::vector<StridedCopy::Axis> steps;
    for (const Both &axis : axes) {
      steps.push_back(kToDepth ? StridedCopy::Axis{axis.length, axis.flat, axis.deep}
                               : StridedCopy::Axis{axis.length, axis.deep, axis.flat});
    }
    copy_ = StridedCopy(std::move(steps), dtype_size(spec.outputs[0].dtype));
  }
  void run(const Args &args, const Lane &lane) const override { copy_.run(args.inputs[0], args.outputs[0], lane); }

 private:
  StridedCopy copy_;
};

COHORT_KERNEL(backend, space_to_depth, MoveBlocks<true>);
COHORT_KERNEL(backend, _backward_space_to_depth, MoveBlocks<false>);
COHORT_KERNEL(backend, depth_to_space, MoveBlocks<false>);
COHORT_KERNEL(backend, _backward_depth_to_space, MoveBlocks<true>);

}  // namespace
}  // namespace cohort
