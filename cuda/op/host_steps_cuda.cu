// SPDX-License-Identifier: Apache-2.0
// The operators that run on the host, and why.
#include "cuda/op/host_step.hpp"
#include "device/kernel_table.hpp"
#include "op/custom.hpp"

namespace cohort {
namespace {

std::unique_ptr<Kernel> on_host(StepSpec &spec) { return make_host_step(spec); }

// They call functions of the host, which may write to auxiliary states.
std::unique_ptr<Kernel> make_custom(StepSpec &spec) {
  return make_host_step(spec, spec.attrs_as<CustomAttrs>().use->num_args());
}
std::unique_ptr<Kernel> make_custom_backward(StepSpec &spec) { return make_host_step(spec, 0); }
COHORT_KERNEL_BY(cuda, Custom, make_custom).named("host");
COHORT_KERNEL_BY(cuda, _backward_Custom, make_custom_backward).named("host");

#define COHORT_HOST_STEP(op) COHORT_KERNEL_BY(cuda, op, on_host).named("host")

// They read files of images, and give what the host's reader makes of them.
COHORT_HOST_STEP(_cvimdecode);
COHORT_HOST_STEP(_cvimread);

// Of shapes that depend on values, which the host has to know before it can go on.
COHORT_HOST_STEP(_contrib_boolean_mask);
COHORT_HOST_STEP(_backward__contrib_boolean_mask);
COHORT_HOST_STEP(_npx_nonzero);

// A search in one histogram, made once for a network.
COHORT_HOST_STEP(_contrib_calibrate_entropy);

// Of many channels, which others do not take.
COHORT_HOST_STEP(_image_normalize).preference(-1);
COHORT_HOST_STEP(_backward__image_normalize).preference(-1);

// Kernels of their own are not written yet.
COHORT_HOST_STEP(Correlation);
COHORT_HOST_STEP(_backward_Correlation);
COHORT_HOST_STEP(_backward__contrib_DeformableConvolution);
COHORT_HOST_STEP(_backward__contrib_ModulatedDeformableConvolution);
COHORT_HOST_STEP(_backward__contrib_RROIAlign);
COHORT_HOST_STEP(_backward__contrib_count_sketch);
COHORT_HOST_STEP(_backward__contrib_fft);
COHORT_HOST_STEP(_backward__contrib_hawkesll);
COHORT_HOST_STEP(_backward__contrib_ifft);
COHORT_HOST_STEP(_backward__linalg_gelqf);
COHORT_HOST_STEP(_backward__linalg_syevd);
COHORT_HOST_STEP(_contrib_DeformableConvolution);
COHORT_HOST_STEP(_contrib_ModulatedDeformableConvolution);
COHORT_HOST_STEP(_contrib_RROIAlign);
COHORT_HOST_STEP(_contrib_count_sketch);
COHORT_HOST_STEP(_contrib_fft);
COHORT_HOST_STEP(_contrib_hawkesll);
COHORT_HOST_STEP(_contrib_ifft);
COHORT_HOST_STEP(_contrib_quantized_act);
COHORT_HOST_STEP(_contrib_quantized_batch_norm);
COHORT_HOST_STEP(_contrib_quantized_concat);
COHORT_HOST_STEP(_contrib_quantized_conv);
COHORT_HOST_STEP(_contrib_quantized_elemwise_add);
COHORT_HOST_STEP(_contrib_quantized_elemwise_mul);
COHORT_HOST_STEP(_contrib_quantized_embedding);
COHORT_HOST_STEP(_contrib_quantized_flatten);
COHORT_HOST_STEP(_contrib_quantized_fully_connected);
COHORT_HOST_STEP(_contrib_quantized_pooling);
COHORT_HOST_STEP(_cvcopyMakeBorder);
COHORT_HOST_STEP(_cvimresize);
COHORT_HOST_STEP(_image_adjust_lighting);
COHORT_HOST_STEP(_image_random_brightness);
COHORT_HOST_STEP(_image_random_color_jitter);
COHORT_HOST_STEP(_image_random_contrast);
COHORT_HOST_STEP(_image_random_hue);
COHORT_HOST_STEP(_image_random_lighting);
COHORT_HOST_STEP(_image_random_saturation);
COHORT_HOST_STEP(_image_resize);
COHORT_HOST_STEP(_linalg_gelqf);
COHORT_HOST_STEP(_linalg_syevd);

}  // namespace
}  // namespace cohort
