// SPDX-License-Identifier: Apache-2.0
#define COHORT_FUSED_MULTIPLY 1

#include "cpu/op/pointwise_loop_body.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace {

#ifdef COHORT_SIMD_VERSIONS
// Leaves out functors that call the standard library: wider instructions do not help them.
template <typename F, int kOperands, bool kVector>
PointwiseLoop<float> best_loop() {
  if constexpr (kVector) return best_version<pointwise::Body<F, float, kOperands>>();
  return nullptr;
}
#endif

}  // namespace

PointwiseLoop<float> fused_multiply_loop([[maybe_unused]] PointwiseCode code) {
#ifdef COHORT_SIMD_VERSIONS
  static const PointwiseLoop<float> kLoops[] = {
#define COHORT_LOOP(name, operands, integer, vector) best_loop<pointwise::name, operands, vector>(),
      COHORT_POINTWISE_LIST(COHORT_LOOP)
#undef COHORT_LOOP
  };
  return kLoops[int(code)];
#else
  return nullptr;
#endif
}

}  // namespace cohort
