// SPDX-License-Identifier: Apache-2.0
// Kernels of src/kernels on images.
#include "cpu/op/cpu_backend.hpp"
#include "kernels/image_border_kernels.hpp"
#include "kernels/image_colors_kernels.hpp"
#include "kernels/image_size_kernels.hpp"

namespace cohort {
namespace {

const bool registered = [] {
  register_image_border_kernels<CpuBackend>();
  register_image_colors_kernels<CpuBackend>();
  register_image_size_kernels<CpuBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
