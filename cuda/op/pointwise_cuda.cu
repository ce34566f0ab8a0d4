// SPDX-License-Identifier: Apache-2.0
// The functors of op/pointwise_math.hpp over CUDA arrays of float and double: the kernels of all element-wise rules.
// One thread per element, so results do not depend on the launch.
#include <vector>

#include "cuda/cuda_launch.hpp"
#include "cuda/cuda_layout.hpp"
#include "cuda/op/pointwise_cuda.hpp"
#include "device/kernel_table.hpp"
#include "op/pointwise.hpp"

namespace cohort {
namespace {

// out may be any of a, b, c: each thread reads its element before it writes it.
template <typename Functor, typename C>
__global__ void apply(const C *a, const C *b, const C *c, C s, C t, C *out, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    out[i] = Functor::template of<C>(a ? a[i] : C(0), b ? b[i] : C(0), c ? c[i] : C(0), s, t);
  }
}

template <typename C>
using Launch = void (*)(const C *a, const C *b, const C *c, C s, C t, C *out, int64_t count, void *stream);

template <typename Functor, typename C>
void launch_apply(const C *a, const C *b, const C *c, C s, C t, C *out, int64_t count, void *stream) {
  launch(apply<Functor, C>, flat_grid(count), stream, a, b, c, s, t, out, count);
}

template <typename C>
Launch<C> launch_of(PointwiseCode code) {
  static constexpr Launch<C> kLaunches[] = {
#define COHORT_LAUNCH(name, operands, integer, vector) launch_apply<pointwise::name, C>,
      COHORT_POINTWISE_LIST(COHORT_LAUNCH)
#undef COHORT_LAUNCH
  };
  return kLaunches[int(code)];
}

template <typename C>
class PointwiseCuda final : public Kernel {
 public:
  PointwiseCuda(const StepSpec &spec, std::vector<PointwiseCall> calls)
      : count_(spec.outputs[0].shape.size()), calls_(std::move(calls)) {
    for (const PointwiseCall &call : calls_) launches_.push_back(launch_of<C>(call.code));
  }

  // The last output first: the first one may be one of the inputs.
  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    for (size_t i = calls_.size(); i-- > 0;) {
      if (!args.outputs[i]) continue;
      const PointwiseCall &call = calls_[i];
      auto operand = [&](int k) { return k < 0 ? nullptr : args.in<C>(k); };
      launches_[i](operand(call.a), operand(call.b), operand(call.c), C(call.s), C(call.t), args.out<C>(int(i)), count_,
                   lane.stream);
    }
  }

 private:
  const int64_t count_;
  const std::vector<PointwiseCall> calls_;
  std::vector<Launch<C>> launches_;
};

}  // namespace

std::unique_ptr<Kernel> make_pointwise(const StepSpec &spec, const std::vector<PointwiseCall> &calls) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<PointwiseCuda<double>>(spec, calls);
  return std::make_unique<PointwiseCuda<float>>(spec, calls);
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
      cuda_kernels().add(op, flat<make_rule>).one_dtype(kWideFloatTypes).any_layout();
    };
    add(rule->name);
    if (!rule->backward.empty()) add(rule->backward_name);
  }
  return true;
}();

}  // namespace
}  // namespace cohort
