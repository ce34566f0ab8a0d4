// SPDX-License-Identifier: Apache-2.0
// Hawkes processes: kernels/hawkes_kernels.hpp.
#include "cpu/op/cpu_backend.hpp"
#include "kernels/hawkes_kernels.hpp"

namespace cohort {
namespace {

const bool registered = [] {
  register_hawkes_kernels<CpuBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
