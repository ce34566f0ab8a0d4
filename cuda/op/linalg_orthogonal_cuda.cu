// SPDX-License-Identifier: Apache-2.0
// Orthogonal factors, by the bodies that all backends share: one block per matrix.
#include "cuda/op/cuda_backend.cuh"
#include "kernels/linalg_orthogonal_kernels.hpp"

namespace cohort {
namespace {

const bool registered = [] {
  register_linalg_orthogonal_kernels<CudaBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
