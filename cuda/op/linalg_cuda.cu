// SPDX-License-Identifier: Apache-2.0
// Linear algebra, by the bodies that all backends share: one block per matrix, one thread per row or column; products
// of _linalg_gemm use tiles. cuSOLVER would be worth its size only for large single matrices.
#include "cuda/op/cuda_backend.cuh"
#include "kernels/linalg_factors_kernels.hpp"
#include "kernels/linalg_products_kernels.hpp"

namespace cohort {
namespace {

const bool registered = [] {
  register_linalg_factor_kernels<CudaBackend>();
  register_linalg_product_kernels<CudaBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
