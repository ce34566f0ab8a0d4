// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "op/sparse_regularizer.hpp"

namespace cohort {
namespace {

class SparseRegularizerCuda final : public Kernel {
 public:
  explicit SparseRegularizerCuda(StepSpec &spec)
      : momentum_(spec.attrs_as<SparseRegularizerAttrs>().momentum),
        rows_(spec.inputs[0].shape[0]),
        columns_(spec.inputs[0].shape[1]),
        each_(spec.inputs[0].shape.size(2, spec.inputs[0].shape.rank())),
        updates_(spec.is_train && !spec.frozen && rows_ * each_ > 0),
        keeps_(spec.keep_for_backward) {
    if (keeps_) spec.saved_bytes = size_t(columns_) * sizeof(float);
  }
  void run(const Args &args, const Lane &lane) const override {
    const float *const x = args.in<float>(0);
    float *const average = args.mutable_in<float>(1);
    const int64_t rows = rows_, columns = columns_, each = each_;
    const float momentum = momentum_;
    if (updates_) {
      for_each_row(lane, columns, [=] __device__(int64_t c) {
        const float sum =
            sum_along<float>(rows * each, [=](int64_t i) { return x[(i / each * columns + c) * each + i % each]; });
        if (threadIdx.x == 0) average[c] = momentum * average[c] + (1 - momentum) * (sum / float(rows * each));
      });
    }
    if (keeps_) copy_bytes(lane, args.saved, average, size_t(columns) * sizeof(float));
    if (args.outputs[0]) copy_bytes(lane, args.outputs[0], x, size_t(rows * columns * each) * sizeof(float));
  }

 private:
  const float momentum_;
  const int64_t rows_, columns_, each_;
  const bool updates_, keeps_;
};

class SparseRegularizerBackwardCuda final : public Kernel {
 public:
  explicit SparseRegularizerBackwardCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<SparseRegularizerAttrs>()),
        count_(spec.inputs[0].shape.size()),
        columns_(spec.inputs[0].shape[1]),
        each_(spec.inputs[0].shape.size(2, spec.inputs[0].shape.rank())) {}
  void run(const Args &args, const Lane &lane) const override {
    const float *const head = args.in<float>(0), *const average = static_cast<const float *>(args.saved);
    float *const dx = args.out<float>(0);
    const float target = attrs_.sparseness_target, penalty = attrs_.penalty;
    const int64_t columns = columns_, each = each_;
    for_each(lane, count_, [=] __device__(int64_t i) {
      const float mean = average[i / each % columns];
      dx[i] = head[i] + penalty * (-target / mean + (1 - target) / (1 - mean));
    });
  }

 private:
  const SparseRegularizerAttrs attrs_;
  const int64_t count_, columns_, each_;
};

COHORT_KERNEL(cuda, IdentityAttachKLSparseReg, SparseRegularizerCuda);
COHORT_KERNEL(cuda, _backward_IdentityAttachKLSparseReg, SparseRegularizerBackwardCuda);

}  // namespace
}  // namespace cohort
