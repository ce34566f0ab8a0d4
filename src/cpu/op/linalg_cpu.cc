// SPDX-License-Identifier: Apache-2.0
// Linear algebra: kernels/linalg_factors_kernels.hpp, kernels/linalg_products_kernels.hpp.
#include "cpu/op/cpu_backend.hpp"
#include "kernels/linalg_factors_kernels.hpp"
#include "kernels/linalg_products_kernels.hpp"

namespace cohort {
namespace {

const bool registered = [] {
  register_linalg_factor_kernels<CpuBackend>();
  register_linalg_product_kernels<CpuBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
