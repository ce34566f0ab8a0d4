// SPDX-License-Identifier: Apache-2.0
// Kernel of _scale_gradient: a head gradient times the loss scale, which is Args::numbers, a double.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace {

template <typename Backend, typename C>
class ScaleGradient final : public Kernel {
 public:
  explicit ScaleGradient(StepSpec &spec) : count_(spec.inputs[0].shape.size()), dtype_(spec.inputs[0].dtype) {
    if (!is_direct()) spec.scratch_bytes = size_t(count_) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto scale = run_value<double>(args.numbers, lane);
    C *const to = is_direct() ? args.out<C>(0) : static_cast<C *>(args.scratch);
    const C *const from = is_direct() ? args.in<C>(0) : to;
    if (!is_direct()) widen(lane, args.inputs[0], dtype_, to, count_);
    Backend::parallel_for(lane, count_, Backend::kCheapGrain, [=] COHORT_DEVICE(int64_t begin, int64_t end) {
      const C by = C(scale.get());
      for (int64_t i = begin; i < end; ++i) to[i] = from[i] * by;
    });
    if (!is_direct()) narrow(lane, to, args.outputs[0], dtype_, count_);
  }

 private:
  bool is_direct() const { return dtype_ == dtype_of<C>(); }
  const int64_t count_;
  const Dtype dtype_;
};

template <typename Backend>
std::unique_ptr<Kernel> make_scale_gradient(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<ScaleGradient<Backend, double>>(spec);
  return std::make_unique<ScaleGradient<Backend, float>>(spec);
}

template <typename Backend>
void register_scale_gradient_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_scale_gradient", make_scale_gradient<Backend>).dtypes(kFloatTypes);
}

}  // namespace
}  // namespace cohort
