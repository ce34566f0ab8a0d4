/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts that tests run on when the device is not what they test: those that COHORT_TEST_CONTEXTS lists, repeated
 * as needed, such as "gpu(0),gpu(1),cpu(0)"; by default cpu(0), cpu(1), ... Calls that name no context use the first of
 * the list (contexts.c) instead of cpu(0). */
#ifndef COHORT_TESTS_CONTEXTS_H
#define COHORT_TESTS_CONTEXTS_H

#include "cohort/cohort.h"

enum { NUM_TEST_CONTEXTS = 16 };

/* NUM_TEST_CONTEXTS of them. */
const cohort_context *test_contexts(void);

/* The i-th context, and the first ones, as messages name them: "cpu(0), cpu(1)". */
const char *context_name(size_t i);
const char *context_names(size_t num);

/* Skips a test about memory, threads or processes of the host where the contexts are not CPUs. */
void only_on_cpus(void);
/* Skips a test that compares bits between contexts where these are of several types. */
void only_on_one_type(void);

/* The address of an array's elements, on any device. */
void *address_of(const cohort_ndarray *array);

#endif
