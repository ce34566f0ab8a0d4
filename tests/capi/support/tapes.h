/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of tapes: they record operators, mark arrays and run backward passes. Include boundary.h,
 * group_tests.h or executor_tests.h first: they define ok(). */
#ifndef COHORT_TESTS_TAPES_H
#define COHORT_TESTS_TAPES_H

#include "cohort/cohort.h"

static inline cohort_tape *new_tape(void) {
  cohort_tape *tape = NULL;

  ok(cohort_tape_create(&tape));
  return tape;
}

/* Applies an operator to a, or to a and b, with one attribute or, where key is NULL, none. */
static inline cohort_error *try_apply(cohort_tape *tape, const char *op, const char *key, const char *value,
                                      cohort_ndarray *a, cohort_ndarray *b, cohort_ndarray **out_output) {
  cohort_ndarray *both[2];
  cohort_arrays *outputs = NULL;
  cohort_error *error;

  both[0] = a;
  both[1] = b;
  error = cohort_tape_invoke(tape, op, &key, &value, key ? 1 : 0, both, b ? 2 : 1, NULL, 0, NULL, &outputs);
  if (error) return error;
  ok(cohort_arrays_get(outputs, 0, out_output));
  cohort_arrays_free(outputs);
  return NULL;
}

static inline cohort_ndarray *apply(cohort_tape *tape, const char *op, cohort_ndarray *a, cohort_ndarray *b) {
  cohort_ndarray *output = NULL;

  ok(try_apply(tape, op, NULL, NULL, a, b, &output));
  return output;
}

static inline cohort_ndarray *apply_with(cohort_tape *tape, const char *op, const char *key, const char *value,
                                         cohort_ndarray *a) {
  cohort_ndarray *output = NULL;

  ok(try_apply(tape, op, key, value, a, NULL, &output));
  return output;
}

/* A float32 vector. */
static inline cohort_ndarray *zeros(int64_t length) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_zeros(&length, 1, COHORT_DTYPE_FLOAT32, NULL, &array));
  return array;
}

/* Marks one array; gradient may be NULL. */
static inline void mark(cohort_tape *tape, cohort_ndarray *array, cohort_ndarray *gradient, int32_t req) {
  ok(cohort_tape_mark(tape, &array, &gradient, &req, 1));
}

static inline void backward_along(cohort_tape *tape, cohort_ndarray *head, int32_t retain_graph) {
  cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;

  options.retain_graph = retain_graph;
  ok(cohort_tape_backward(tape, &head, NULL, 1, &options));
}

/* Writes three values to an array of that length. */
static inline void put(cohort_ndarray *array, float a, float b, float c) {
  float values[3];

  values[0] = a, values[1] = b, values[2] = c;
  ok(cohort_ndarray_write(array, values, sizeof(values)));
}

static inline size_t num_recorded(cohort_tape *tape) {
  size_t num = 0;

  ok(cohort_tape_num_recorded(tape, &num));
  return num;
}

#endif
