// SPDX-License-Identifier: Apache-2.0
// Kernels of src/kernels that compute in float or double.
#include "cpu/op/cpu_backend.hpp"
#include "kernels/box_coding_kernels.hpp"
#include "kernels/boxes_kernels.hpp"
#include "kernels/control_flow_kernels.hpp"
#include "kernels/image_resize_kernels.hpp"
#include "kernels/interleaved_attention_kernels.hpp"
#include "kernels/psroi_pooling_kernels.hpp"
#include "kernels/random_pdf_kernels.hpp"
#include "kernels/roi_pooling_kernels.hpp"
#include "kernels/scale_gradient_kernels.hpp"
#include "kernels/scaling_kernels.hpp"
#include "kernels/spatial_sampler_kernels.hpp"

namespace cohort {
namespace {

const bool registered = [] {
  register_adaptive_pooling_kernels<CpuBackend>();
  register_box_coding_kernels<CpuBackend>();
  register_boxes_kernels<CpuBackend>();
  register_interleaved_attention_kernels<CpuBackend>();
  register_psroi_pooling_kernels<CpuBackend>();
  register_random_pdf_kernels<CpuBackend>();
  register_roi_pooling_kernels<CpuBackend>();
  register_scale_gradient_kernels<CpuBackend>();
  register_scaling_kernels<CpuBackend>();
  register_spatial_sampler_kernels<CpuBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
