// SPDX-License-Identifier: Apache-2.0
// A loop compiled for several instruction sets; the best one for this processor is chosen when a kernel is made. By
// plain function pointers, as indirect functions of the linker (target_clones) run before a sanitizer is ready.
#pragma once

#include "kernels/loop_hints.hpp"

namespace cohort {

enum class Simd : int { kBase = 0, kAvx2 = 1, kAvx512 = 2 };

Simd simd_level();  // the best level of this processor; kBase if there are no other versions

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define COHORT_SIMD_VERSIONS 1
// flatten: inlines everything that the loop calls, so that it is compiled for the same instruction set.
#define COHORT_SIMD_BASE __attribute__((flatten))
#define COHORT_SIMD_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2"), flatten))
#define COHORT_SIMD_AVX512 \
  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2,prefer-vector-width=512"), flatten))
#endif

// Body::run, in the version for this processor. Body is a class with one static function run, which is not a
// template.
template <typename Body, typename Result, typename... Args>
struct SimdVersions {
  using Function = Result (*)(Args...);
#ifdef COHORT_SIMD_VERSIONS
  COHORT_SIMD_BASE static Result base(Args... args) { return Body::run(args...); }
  COHORT_SIMD_AVX2 static Result avx2(Args... args) { return Body::run(args...); }
  COHORT_SIMD_AVX512 static Result avx512(Args... args) { return Body::run(args...); }
  static Function best() {
    switch (simd_level()) {
      case Simd::kAvx512:
        return avx512;
      case Simd::kAvx2:
        return avx2;
      case Simd::kBase:
        break;
    }
    return base;
  }
#else
  static Function best() { return Body::run; }
#endif
};

namespace detail {
template <typename Body, typename Result, typename... Args>
SimdVersions<Body, Result, Args...> simd_versions(Result (*)(Args...));
}  // namespace detail

template <typename Body>
auto best_version() {
  return decltype(detail::simd_versions<Body>(&Body::run))::best();
}

}  // namespace cohort
