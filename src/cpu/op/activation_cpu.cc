// SPDX-License-Identifier: Apache-2.0
// Activation, in whatever layout the data lie: flat memory, since layouts of activations hold no padding. float32
// through oneDNN but for softsign, which it lacks, and for short relu, where a call costs more than the loop.
#include "cpu/dnnl_kernel.hpp"
#include "cpu/dnnl_post_ops.hpp"
#include "cpu/op/activation_math.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using namespace dnn;

int64_t flat_size(const TensorSpec &tensor) { return int64_t(tensor.bytes() / dtype_size(tensor.dtype)); }

std::string refuses(const StepSpec &spec, const TensorSpec &data) {
  const int type = spec.attrs_as<ActivationAttrs>().act_type;
  const int64_t count = flat_size(data);
  if (type == ActivationAttrs::kSoftsign) return "has no softsign";
  if (type == ActivationAttrs::kRelu && count <= 4096) return "costs more than a loop for a short relu";
  return count > 0 ? "" : "takes no array without elements";
}

std::string refuses_forward(const StepSpec &spec) { return refuses(spec, spec.inputs[0]); }

std::string refuses_backward(const StepSpec &spec) {
  if (spec.attrs_as<ActivationAttrs>().act_type == ActivationAttrs::kSoftrelu) return "wants the data of softrelu";
  return refuses(spec, spec.inputs[1]);
}

class EltwiseKernel final : public Kernel {
 public:
  EltwiseKernel(int num_threads, Call call) : num_threads_(num_threads), call_(std::move(call)) {}
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
  }

 private:
  const int num_threads_;
  Call call_;
};

class PlainActivation final : public Kernel {
 public:
  explicit PlainActivation(StepSpec &spec)
      : type_(spec.attrs_as<ActivationAttrs>().act_type),
        dtype_(spec.inputs[0].dtype),
        count_(flat_size(spec.inputs[0])) {
    spec.outputs[0].layout = spec.inputs[0].layout;
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "Activation", [&](auto t) {
      using T = decltype(t);
      using C = typename Accumulator<T>::type;
      const T *x = args.in<T>(0);
      T *y = args.out<T>(0);
      with_activation<C>(type_, [&](auto f) {
        parallel_for(lane, count_, 4096, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) y[i] = cast_element<T>(f(cast_element<C>(x[i])));
        });
      });
    });
  }

 private:
  const int type_;
  const Dtype dtype_;
  const int64_t count_;
};

class PlainActivationBackward final : public Kernel {
 public:
  explicit PlainActivationBackward(StepSpec &spec)
      : type_(spec.attrs_as<ActivationAttrs>().act_type),
        dtype_(spec.inputs[0].dtype),
        count_(flat_size(spec.inputs[1])) {
    spec.inputs[0].layout = spec.outputs[0].layout = spec.inputs[1].layout;
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_Activation", [&](auto t) {
      using T = decltype(t);
      using C = typename Accumulator<T>::type;
      const T *head = args.in<T>(0), *y = args.in<T>(1);
      T *grad = args.out<T>(0);
      with_activation_slope<C>(type_, [&](auto slope) {
        parallel_for(lane, count_, 4096, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            grad[i] = cast_element<T>(cast_element<C>(head[i]) * slope(cast_element<C>(y[i])));
          }
        });
      });
    });
  }

 private:
  const int type_;
  const Dtype dtype_;
  const int64_t count_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const int type = spec.attrs_as<ActivationAttrs>().act_type;
  const int64_t count = flat_size(spec.inputs[0]);
  const int num_threads = threads_for_elements(spec, double(count));
  const ThreadsScope threads(num_threads);
  const Desc flat = row_major({count}, spec.inputs[0].dtype);
  const Eltwise eltwise = eltwise_of(type);
  const auto pd = attempt([&] {
    return eltwise_desc(engine(), attributes(), prop_kind::forward_inference, eltwise.forward, flat, eltwise.alpha);
  });
  if (!pd) return nullptr;
  spec.outputs[0].layout = spec.inputs[0].layout;
  return std::make_unique<EltwiseKernel>(
      num_threads,
      Call(*pd, name_of(spec), {{DNNL_ARG_SRC, flat, Place::input(0)}, {DNNL_ARG_DST, flat, Place::output(0)}}, spec));
}

// Inputs: head gradient; output, or data for softsign.
std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const int type = spec.attrs_as<ActivationAttrs>().act_type;
  const int64_t count = flat_size(spec.inputs[1]);
  const int num_threads = threads_for_elements(spec, double(count));
  const ThreadsScope threads(num_threads);
  const Desc flat = row_major({count}, spec.inputs[0].dtype);
  const Eltwise eltwise = eltwise_of(type);
  const auto pd = attempt([&] {
    const auto hint =
        eltwise_desc(engine(), attributes(), prop_kind::forward_training, eltwise.backward, flat, eltwise.alpha);
    return eltwise_backward_desc(engine(), attributes(), hint, eltwise.backward, flat, eltwise.alpha);
  });
  if (!pd) return nullptr;
  spec.inputs[0].layout = spec.outputs[0].layout = spec.inputs[1].layout;
  return std::make_unique<EltwiseKernel>(num_threads, Call(*pd, name_of(spec),
                                                           {{DNNL_ARG_DIFF_DST, flat, Place::input(0)},
                                                            {DNNL_ARG_DST, flat, Place::input(1)},
                                                            {DNNL_ARG_DIFF_SRC, flat, Place::output(0)}},
                                                           spec));
}

COHORT_KERNEL_BY(cpu, Activation, make_forward).named("onednn").dtypes(kLayerTypes).when(refuses_forward).any_layout();
COHORT_KERNEL(cpu, Activation, PlainActivation).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cpu, _backward_Activation, make_backward)
    .named("onednn")
    .dtypes(kLayerTypes)
    .when(refuses_backward)
    .any_layout();
COHORT_KERNEL(cpu, _backward_Activation, PlainActivationBackward).dtypes(kFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
