// SPDX-License-Identifier: Apache-2.0
// Orthogonal factorizations: kernels/linalg_orthogonal_kernels.hpp.
#include "cpu/op/cpu_backend.hpp"
#include "kernels/linalg_orthogonal_kernels.hpp"

namespace cohort {
namespace {

const bool registered = [] {
  register_linalg_orthogonal_kernels<CpuBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
