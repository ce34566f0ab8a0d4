// SPDX-License-Identifier: Apache-2.0
#include "op/sparse_regularizer.hpp"

#include <algorithm>

#include "device/kernel_table.hpp"

namespace cohort {
namespace {

class SparseRegularizerForward final : public Kernel {
 public:
  explicit SparseRegularizerForward(StepSpec &spec)
      : momentum_(spec.attrs_as<SparseRegularizerAttrs>().momentum),
        rows_(spec.inputs[0].shape[0]),
        cols_(spec.inputs[0].shape[1]),
        each_(spec.inputs[0].shape.size(2, spec.inputs[0].shape.rank())),
        updates_(spec.is_train && !spec.frozen),
        keeps_(spec.keep_for_backward) {
    if (keeps_) spec.saved_bytes = size_t(cols_) * sizeof(float);
  }

  void run(const Args &args, const Lane &) const override {
    const float *const x = args.in<float>(0);
    float *const average = args.mutable_in<float>(1);
    for (int64_t c = 0; updates_ && rows_ * each_ > 0 && c < cols_; ++c) {
      float sum = 0;
      for (int64_t r = 0; r < rows_; ++r) {
        for (int64_t i = (r * cols_ + c) * each_; i < (r * cols_ + c + 1) * each_; ++i) sum += x[i];
      }
      average[c] = momentum_ * average[c] + (1 - momentum_) * (sum / float(rows_ * each_));
    }
    if (keeps_) std::copy_n(average, cols_, static_cast<float *>(args.saved));
    if (args.outputs[0]) std::copy_n(x, rows_ * cols_ * each_, args.out<float>(0));
  }

 private:
  const float momentum_;
  const int64_t rows_, cols_, each_;  // each_: elements of a column in a row
  const bool updates_, keeps_;
};

class SparseRegularizerBackward final : public Kernel {
 public:
  explicit SparseRegularizerBackward(StepSpec &spec)
      : a_(spec.attrs_as<SparseRegularizerAttrs>()),
        count_(spec.inputs[0].shape.size()),
        cols_(spec.inputs[0].shape[1]),
        each_(spec.inputs[0].shape.size(2, spec.inputs[0].shape.rank())) {}

  void run(const Args &args, const Lane &) const override {
    const float *const head = args.in<float>(0), *const average = static_cast<const float *>(args.saved);
    float *const dx = args.out<float>(0);
    for (int64_t i = 0; i < count_; ++i) {
      const float mean = average[i / each_ % cols_], target = a_.sparseness_target;
      dx[i] = head[i] + a_.penalty * (-target / mean + (1 - target) / (1 - mean));
    }
  }

 private:
  const SparseRegularizerAttrs a_;
  const int64_t count_, cols_, each_;
};

COHORT_KERNEL(cpu, IdentityAttachKLSparseReg, SparseRegularizerForward);
COHORT_KERNEL(cpu, _backward_IdentityAttachKLSparseReg, SparseRegularizerBackward);

}  // namespace
}  // namespace cohort
