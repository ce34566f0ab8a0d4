// SPDX-License-Identifier: Apache-2.0
// Activation, in any layout: layouts of activations hold no padding, so data are flat memory. float32 by oneDNN, with
// the same bits as where a layer fuses the activation (MON-11), except for softsign, which oneDNN lacks, and relu,
// which turns NaN into 0 there.
#include "cpu/dnnl_kernel.hpp"
#include "cpu/dnnl_post_ops.hpp"
#include "cpu/op/elementwise.hpp"
#include "device/kernel_table.hpp"
#include "op/activation.hpp"

namespace cohort {
namespace {

using namespace dnn;

int64_t flat_size(const TensorSpec &tensor) { return int64_t(tensor.bytes() / dtype_size(tensor.dtype)); }

std::string refuses(const StepSpec &spec) {
  const int type = spec.attrs_as<ActivationAttrs>().act_type;
  const int64_t count = flat_size(spec.inputs[0]);
  if (type == ActivationAttrs::kSoftsign) return "has no softsign";
  if (type == ActivationAttrs::kRelu) return "makes 0 of what is no number";
  return count > 0 ? "" : "takes no array without elements";
}

class EltwiseKernel final : public Kernel {
 public:
  EltwiseKernel(int num_threads, DnnlCall call) : num_threads_(num_threads), call_(std::move(call)) {}
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
  }

 private:
  const int num_threads_;
  DnnlCall call_;
};

std::unique_ptr<Kernel> make_loop(StepSpec &spec) {
  spec.outputs[0].layout = spec.inputs[0].layout;
  return make_elementwise(spec, {activation_call(spec.attrs_as<ActivationAttrs>().act_type)});
}

std::unique_ptr<Kernel> make_backward_loop(StepSpec &spec) {
  spec.inputs[0].layout = spec.outputs[0].layout = spec.inputs[1].layout;
  return make_elementwise(spec, {activation_gradient_call(spec.attrs_as<ActivationAttrs>().act_type)});
}

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
      DnnlCall(*pd, name_of(spec),
               {{DNNL_ARG_SRC, flat, BufferRef::input(0)}, {DNNL_ARG_DST, flat, BufferRef::output(0)}}, spec));
}

COHORT_KERNEL_BY(cpu, Activation, make_forward).named("onednn").dtypes(kLayerTypes).when(refuses).any_layout();
COHORT_KERNEL_BY(cpu, Activation, make_loop).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cpu, _backward_Activation, make_backward_loop).dtypes(kFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
