// SPDX-License-Identifier: Apache-2.0
// The functors of op/pointwise_math.hpp over CUDA arrays: the kernels of all element-wise rules and of Activation, and
// of the plan's own sums. float and double; one thread an element, so results do not depend on the launch.
#include <vector>

#include "cuda/cuda_launch.hpp"
#include "cuda/cuda_layout.hpp"
#include "device/kernel_table.hpp"
#include "op/activation.hpp"
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

  // The last output first: the first one may lie where an input is.
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

std::unique_ptr<Kernel> make_pointwise(const StepSpec &spec, const std::vector<PointwiseCall> &calls) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<PointwiseCuda<double>>(spec, calls);
  return std::make_unique<PointwiseCuda<float>>(spec, calls);
}

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

std::unique_ptr<Kernel> make_activation(StepSpec &spec) {
  return make_pointwise(spec, {activation_call(spec.attrs_as<ActivationAttrs>().act_type)});
}
std::unique_ptr<Kernel> make_activation_gradient(StepSpec &spec) {
  return make_pointwise(spec, {activation_gradient_call(spec.attrs_as<ActivationAttrs>().act_type)});
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

COHORT_KERNEL_BY(cuda, Activation, flat<make_activation>).one_dtype(kWideFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Activation, flat<make_activation_gradient>).one_dtype(kWideFloatTypes).any_layout();

// out = in0 + in1 + ..., added up in this order; out may be in0.
template <typename C>
__global__ void add_vectors(C *sum, const C *a, const C *b, int64_t count) {  // count: of vectors
  constexpr int kSize = Vector<C>::kSize;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    Vector<C> x = load_vector(a + i * kSize);
    const Vector<C> y = load_vector(b + i * kSize);
    for (int k = 0; k < kSize; ++k) x.at[k] += y.at[k];
    store_vector(sum + i * kSize, x);
  }
}

template <typename C>
__global__ void add_to(C *sum, const C *a, const C *b, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    sum[i] = a[i] + b[i];
  }
}

class SumGradientsCuda final : public Kernel {
 public:
  explicit SumGradientsCuda(StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        num_inputs_(int(spec.inputs.size())),
        bytes_(spec.outputs[0].bytes()),
        is_double_(spec.outputs[0].dtype == Dtype::kFloat64) {}

  void run(const Args &args, const Lane &lane) const override {
    const auto stream = static_cast<cudaStream_t>(lane.stream);
    if (count_ == 0) return;
    if (num_inputs_ == 1 && args.inputs[0] != args.outputs[0]) {
      CUDA_CHECK(cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes_, cudaMemcpyDeviceToDevice, stream));
    }
    const void *sum = args.inputs[0];
    for (int i = 1; i < num_inputs_; ++i) {
      if (is_double_) {
        add(args.out<double>(0), static_cast<const double *>(sum), args.in<double>(i), stream);
      } else {
        add(args.out<float>(0), static_cast<const float *>(sum), args.in<float>(i), stream);
      }
      sum = args.outputs[0];
    }
  }

 private:
  // What does not fill a vector, and all of what does not begin as one, an element at a time.
  template <typename C>
  void add(C *sum, const C *a, const C *b, cudaStream_t stream) const {
    const int64_t vectors = can_be_vectors({sum, a, b}) ? count_ / Vector<C>::kSize : 0,
                  done = vectors * Vector<C>::kSize;
    if (vectors > 0) launch(add_vectors<C>, flat_grid(vectors), stream, sum, a, b, vectors);
    if (done < count_) {
      launch(add_to<C>, flat_grid(count_ - done), stream, sum + done, a + done, b + done, count_ - done);
    }
  }

  const int64_t count_;
  const int num_inputs_;
  const size_t bytes_;
  const bool is_double_;
};

COHORT_KERNEL_BY(cuda, _sum_gradients, flat<make_kernel_of<SumGradientsCuda>>).one_dtype(kWideFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
