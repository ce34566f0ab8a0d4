// SPDX-License-Identifier: Apache-2.0
// "_reorder": copies a tensor from one layout to another. Device::make_reorder makes the step.
#include "cuda/cuda_layout.hpp"
#include "device/kernel_table.hpp"
#include "kernels/strided_copy.hpp"

namespace cohort {
namespace {

class ReorderCuda final : public Kernel {
 public:
  explicit ReorderCuda(const StepSpec &spec) {
    const TensorSpec &from = spec.inputs[0], &to = spec.outputs[0];
    const std::vector<int64_t> source = strides_of(from), target = strides_of(to);
    std::vector<StridedCopy::Axis> axes;
    for (int axis = 0; axis < to.shape.rank(); ++axis) {
      axes.push_back({to.shape[axis], source[size_t(axis)], target[size_t(axis)]});
    }
    copy_ = StridedCopy(std::move(axes), dtype_size(to.dtype));
  }
  void run(const Args &args, const Lane &lane) const override { copy_.run(args.inputs[0], args.outputs[0], lane); }

 private:
  StridedCopy copy_;
};

COHORT_KERNEL(cuda, _reorder, ReorderCuda).any_layout();

}  // namespace
}  // namespace cohort
