// SPDX-License-Identifier: Apache-2.0
// _fold_batch_norm: filters and bias of a convolution that a BatchNorm follows.
#include <algorithm>

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/fold_batch_norm.hpp"

namespace cohort {
namespace {

class FoldBatchNormCuda final : public Kernel {
 public:
  explicit FoldBatchNormCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<FoldBatchNormAttrs>()),
        channels_(spec.inputs[0].shape[0]),
        row_(spec.inputs[0].shape.size() / std::max<int64_t>(1, channels_)) {}
  void run(const Args &args, const Lane &lane) const override {
    const int first = attrs_.has_bias ? 2 : 1;
    const float *const weight = args.in<float>(0), *const bias = attrs_.has_bias ? args.in<float>(1) : nullptr;
    const float *const gamma = attrs_.fix_gamma ? nullptr : args.in<float>(first), *const beta =
                                                                                       args.in<float>(first + 1);
    const float *const mean = args.in<float>(first + 2), *const variance = args.in<float>(first + 3);
    float *const new_weight = args.out<float>(0), *const new_bias = args.out<float>(1);
    const double eps = attrs_.eps;
    const int64_t row = row_;
    for_each(lane, channels_ * row, [=] __device__(int64_t i) {
      const int64_t c = i / row;
      const float scale = float((gamma ? double(gamma[c]) : 1.0) / sqrt(double(variance[c]) + eps));
      new_weight[i] = weight[i] * scale;
    });
    for_each(lane, channels_, [=] __device__(int64_t c) {
      const float scale = float((gamma ? double(gamma[c]) : 1.0) / sqrt(double(variance[c]) + eps));
      new_bias[c] = ((bias ? bias[c] : 0.0f) - mean[c]) * scale + beta[c];
    });
  }

 private:
  const FoldBatchNormAttrs attrs_;
  const int64_t channels_, row_;
};
COHORT_KERNEL(cuda, _fold_batch_norm, FoldBatchNormCuda).one_dtype({Dtype::kFloat32});

}  // namespace
}  // namespace cohort
