// SPDX-License-Identifier: Apache-2.0
// The operators that run on the host, and why.
#include "cuda/op/host_step.hpp"
#include "device/kernel_table.hpp"
#include "op/custom.hpp"

namespace cohort {
namespace {

std::unique_ptr<Kernel> on_host(StepSpec &spec) { return make_host_step(spec); }

// Custom operators call functions of the host, which may write to auxiliary states.
std::unique_ptr<Kernel> make_custom(StepSpec &spec) {
  return make_host_step(spec, spec.attrs_as<CustomAttrs>().use->num_args());
}
std::unique_ptr<Kernel> make_custom_backward(StepSpec &spec) { return make_host_step(spec, 0); }
COHORT_KERNEL_BY(cuda, Custom, make_custom).named("host");
COHORT_KERNEL_BY(cuda, _backward_Custom, make_custom_backward).named("host");

#define COHORT_HOST_STEP(op) COHORT_KERNEL_BY(cuda, op, on_host).named("host")

// They decode images by the host's decoder.
COHORT_HOST_STEP(_cvimdecode);
COHORT_HOST_STEP(_cvimread);

// Output shapes depend on values, which the host must read before it can go on.
COHORT_HOST_STEP(_contrib_boolean_mask);
COHORT_HOST_STEP(_backward__contrib_boolean_mask);
COHORT_HOST_STEP(_npx_nonzero);

// A search in one histogram, made once for a network.
COHORT_HOST_STEP(_contrib_calibrate_entropy);

}  // namespace
}  // namespace cohort
