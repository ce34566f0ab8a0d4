/* SPDX-License-Identifier: Apache-2.0 */
/* A sanitizer slows everything down. Under one, tests run every path of the code once and leave out what takes
 * repetitions to show: learning, growth of memory. */
#ifndef COHORT_TESTS_SANITIZER_H
#define COHORT_TESTS_SANITIZER_H

#if defined(UNDER_ASAN) || defined(UNDER_TSAN)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

#endif
