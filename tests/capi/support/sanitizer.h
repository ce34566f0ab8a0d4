/* SPDX-License-Identifier: Apache-2.0 */
/* Under a sanitizer, which slows everything down, tests go through every path of the code once, and leave out what only
 * repetitions show: learning, growth. */
#ifndef COHORT_TESTS_SANITIZER_H
#define COHORT_TESTS_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

#endif
