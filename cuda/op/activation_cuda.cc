// SPDX-License-Identifier: Apache-2.0
// Activation, by the point-wise kernels.
#include "cuda/cuda_layout.hpp"
#include "cuda/op/pointwise_cuda.hpp"
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

COHORT_KERNEL_BY(cuda, Activation, flat<make_activation>).one_dtype(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Activation, flat<make_activation_gradient>).one_dtype(kFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
