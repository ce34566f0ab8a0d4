/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where tests run whose subject is not where they run: on the contexts that COHORT_TEST_CONTEXTS lists, over and over,
 * such as "gpu(0),gpu(1),cpu(0)"; on cpu(0), cpu(1), ... without it. Calls that name no context are on the first of
 * them (contexts.c), as they are on cpu(0) without it.
 */
#ifndef COHORT_TESTS_CONTEXTS_H
#define COHORT_TESTS_CONTEXTS_H

#include "cohort/cohort.h"

enum { NUM_TEST_CONTEXTS = 16 };

/* NUM_TEST_CONTEXTS of them. */
const cohort_context *test_contexts(void);

/* The i-th, and the first ones, as messages name them: "cpu(0), cpu(1)". */
const char *context_name(size_t i);
const char *context_names(size_t num);

/* For a test about memory, threads or processes of the host: skipped on other contexts than the CPU's. */
void only_on_cpus(void);
/* For a test that finds the same bits on several contexts: skipped where they are of several types. */
void only_on_one_type(void);

/* The address of an array's elements, on whatever device. */
void *address_of(const cohort_ndarray *array);

#endif
