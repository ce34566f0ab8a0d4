// SPDX-License-Identifier: Apache-2.0
// Hints to the compiler in loops of kernels.
#pragma once

// Before a loop: no iteration reads or writes what another one writes.
#if defined(__CUDACC__)
#define COHORT_INDEPENDENT_ITERATIONS
#elif defined(__clang__)
#define COHORT_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define COHORT_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
