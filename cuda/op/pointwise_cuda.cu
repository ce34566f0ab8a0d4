// SPDX-License-Identifier: Apache-2.0
// The kernels of all element-wise rules on floating types (pointwise_kernels.cuh).
#include <vector>

#include "cuda/cuda_layout.hpp"
#include "cuda/op/pointwise_cuda.hpp"
#include "cuda/op/pointwise_kernels.cuh"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using pointwise_kernels::Launch;
using pointwise_kernels::launch_of;

template <typename T>
class PointwiseCuda final : public Kernel {
 public:
  PointwiseCuda(const StepSpec &spec, std::vector<PointwiseCall> calls)
      : count_(spec.outputs[0].shape.size()), calls_(std::move(calls)) {
    for (const PointwiseCall &call : calls_) launches_.push_back(launch_of<T>(call.code));
  }

  // The last output first: the first one may be one of the inputs.
  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    for (size_t i = calls_.size(); i-- > 0;) {
      if (!args.outputs[i]) continue;
      const PointwiseCall &call = calls_[i];
      auto operand = [&](int k) { return k < 0 ? nullptr : args.in<T>(k); };
      launches_[i]({operand(call.a), operand(call.b), operand(call.c), args.out<T>(int(i)), count_},
                   ComputeOf<T>(call.s), ComputeOf<T>(call.t), lane.stream);
    }
  }

 private:
  const int64_t count_;
  const std::vector<PointwiseCall> calls_;
  std::vector<Launch<T>> launches_;
};

}  // namespace

std::unique_ptr<Kernel> make_pointwise(const StepSpec &spec, const std::vector<PointwiseCall> &calls) {
  return dispatch_float(spec.outputs[0].dtype, "point-wise function", [&](auto type) -> std::unique_ptr<Kernel> {
    return std::make_unique<PointwiseCuda<decltype(type)>>(spec, calls);
  });
}

namespace {

std::unique_ptr<Kernel> make_rule(StepSpec &spec) {
  const PointwiseRule &rule = *find_pointwise_rule(spec.op);
  std::vector<PointwiseCall> calls;
  if (spec.op == rule.name) {
    calls.push_back(rule.forward_call(spec.attrs.get()));
  } else {
    for (size_t i = 0; i < rule.backward.size(); ++i) calls.push_back(rule.backward_call(spec.attrs.get(), int(i)));
  }
  return make_pointwise(spec, calls);
}

const bool rules_registered = [] {
  for (const auto &rule : pointwise_rules()) {
    if (rule->form != PointwiseRule::Form::kElementwise) continue;
    const auto add = [](const std::string &op) {
      cuda_kernels().add(op, flat<make_rule>).one_dtype(kFloatTypes).any_layout();
    };
    add(rule->name);
    if (!rule->backward.empty()) add(rule->backward_name);
  }
  return true;
}();

}  // namespace
}  // namespace cohort
