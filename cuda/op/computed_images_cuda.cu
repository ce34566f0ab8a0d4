// SPDX-License-Identifier: Apache-2.0
// Kernels of images whose bodies are the same for all backends.
#include "cuda/op/cuda_backend.cuh"
#include "kernels/image_border_kernels.hpp"
#include "kernels/image_colors_kernels.hpp"
#include "kernels/image_size_kernels.hpp"

namespace cohort {
namespace {

const bool registered = [] {
  register_image_border_kernels<CudaBackend>();
  register_image_colors_kernels<CudaBackend>();
  register_image_size_kernels<CudaBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
