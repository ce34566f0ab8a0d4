// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "device/kernel_table.hpp"
#include "op/fold_batch_norm.hpp"

namespace cohort {
namespace {

class FoldBatchNorm final : public Kernel {
 public:
  explicit FoldBatchNorm(const StepSpec &spec)
      : attrs_(spec.attrs_as<FoldBatchNormAttrs>()),
        channels_(spec.inputs[0].shape[0]),
        row_(spec.inputs[0].shape.size() / std::max<int64_t>(1, channels_)) {}

  void run(const Args &args, const Lane &) const override {
    const int first = attrs_.has_bias ? 2 : 1;
    const float *weight = args.in<float>(0), *bias = attrs_.has_bias ? args.in<float>(1) : nullptr;
    const float *gamma = args.in<float>(first);
    const float *beta = args.in<float>(first + 1), *mean = args.in<float>(first + 2), *var = args.in<float>(first + 3);
    float *new_weight = args.out<float>(0), *new_bias = args.out<float>(1);
    for (int64_t c = 0; c < channels_; ++c) {
      const float scale = float((attrs_.fix_gamma ? 1.0 : double(gamma[c])) / std::sqrt(double(var[c]) + attrs_.eps));
      for (int64_t i = 0; i < row_; ++i) new_weight[c * row_ + i] = weight[c * row_ + i] * scale;
      new_bias[c] = ((bias ? bias[c] : 0.0f) - mean[c]) * scale + beta[c];
    }
  }

 private:
  const FoldBatchNormAttrs attrs_;
  const int64_t channels_, row_;
};

COHORT_KERNEL(cpu, _fold_batch_norm, FoldBatchNorm).one_dtype({Dtype::kFloat32});

}  // namespace
}  // namespace cohort
