// SPDX-License-Identifier: Apache-2.0
#include "cpu/simd.hpp"

namespace cohort {

Simd simd_level() {
#ifdef COHORT_SIMD_VERSIONS
  static const Simd level = [] {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return avx2 && avx512 ? Simd::kAvx512 : avx2 ? Simd::kAvx2 : Simd::kBase;
  }();
  return level;
#else
  return Simd::kBase;
#endif
}

}  // namespace cohort
