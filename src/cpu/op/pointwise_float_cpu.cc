// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/pointwise_loop_body.hpp"
#include "cpu/simd.hpp"

namespace cohort {

template <>
PointwiseLoop<float> pointwise_loop(PointwiseCode code) {
  static constexpr PointwiseLoop<float> kLoops[] = {
#define COHORT_LOOP(name, operands, integer, vector) pointwise::Body<pointwise::name, float, operands>::run,
      COHORT_POINTWISE_LIST(COHORT_LOOP)
#undef COHORT_LOOP
  };
  const PointwiseLoop<float> better = simd_level() == Simd::kBase ? nullptr : fused_multiply_loop(code);
  return better ? better : kLoops[int(code)];
}

}  // namespace cohort
