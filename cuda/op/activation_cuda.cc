// SPDX-License-Identifier: Apache-2.0
// Activation: a kernel for each function in float and double; in 16-bit floats one that interprets them.
#include "cuda/cuda_layout.hpp"
#include "cuda/op/pointwise_cuda.hpp"
#include "cuda/op/strided_cuda.hpp"
#include "device/kernel_table.hpp"
#include "op/activation.hpp"

namespace cohort {
namespace {

std::unique_ptr<Kernel> make_activation(StepSpec &spec) {
  return make_pointwise(spec, {activation_call(spec.attrs_as<ActivationAttrs>().act_type)});
}
std::unique_ptr<Kernel> make_activation_gradient(StepSpec &spec) {
  return make_pointwise(spec, {activation_gradient_call(spec.attrs_as<ActivationAttrs>().act_type)});
}

COHORT_KERNEL_BY(cuda, Activation, flat<make_activation>).one_dtype(kWideFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Activation, flat<make_activation_gradient>).one_dtype(kWideFloatTypes).any_layout();

std::unique_ptr<Kernel> make_strided(StepSpec &spec, const PointwiseCall &call) {
  auto kernel = std::make_unique<strided::StridedCuda>();
  kernel->add(spec, spec.outputs[0].dtype, strided::source_of(spec, call, spec.outputs[0].shape, 0), 0);
  return kernel;
}
std::unique_ptr<Kernel> make_strided_activation(StepSpec &spec) {
  return make_strided(spec, activation_call(spec.attrs_as<ActivationAttrs>().act_type));
}
std::unique_ptr<Kernel> make_strided_activation_gradient(StepSpec &spec) {
  return make_strided(spec, activation_gradient_call(spec.attrs_as<ActivationAttrs>().act_type));
}

COHORT_KERNEL_BY(cuda, Activation, flat<make_strided_activation>)
    .named("strided")
    .preference(-1)
    .one_dtype(kFloatTypes)
    .any_layout();
COHORT_KERNEL_BY(cuda, _backward_Activation, flat<make_strided_activation_gradient>)
    .named("strided")
    .preference(-1)
    .one_dtype(kFloatTypes)
    .any_layout();

}  // namespace
}  // namespace cohort
