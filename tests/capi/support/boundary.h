/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the API boundary: expectations on errors, a small network, arrays from literals. */
#ifndef COHORT_TESTS_BOUNDARY_H
#define COHORT_TESTS_BOUNDARY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cohort/cohort.h"
#include "support/contexts.h"

/* Fails the test with the error's message if the call failed. Frees the error. */
#define ok(call) expect_success((call), #call, __FILE__, __LINE__)
/* Fails the test unless the call failed with this class of error and a one-line message that contains `part`. Frees the
 * error. */
#define fails(call, code, part) expect_failure((call), (code), (part), #call, __FILE__, __LINE__)

#define TEST(function) cmocka_unit_test_setup_teardown(function, note_handles, same_handles)
#define NUM_OF(array) (sizeof(array) / sizeof((array)[0]))

static inline void expect_success(cohort_error *error, const char *call, const char *file, int line) {
  if (!error) return;
  print_error("%s: %s error on '%s': %s\n", call, cohort_error_code_text(cohort_error_code(error)),
              cohort_error_subject(error), cohort_error_message(error));
  cohort_error_free(error);
  _fail(file, line);
}

static inline void expect_failure(cohort_error *error, int32_t code, const char *part, const char *call,
                                  const char *file, int line) {
  const char *message = cohort_error_message(error);
  const int32_t found = cohort_error_code(error);
  const int good = found == code && strstr(message, part) && !strchr(message, '\n');

  if (!good) {
    print_error("%s: expected %s error with \"%s\", found %s \"%s\"\n", call, cohort_error_code_text(code), part,
                cohort_error_code_text(found), message);
  }
  cohort_error_free(error);
  if (!good) _fail(file, line);
}

/* Setup and teardown of tests: the number of live handles must be the same after a test as before. */
static size_t handles_before;

static inline int note_handles(void **state) {
  (void)state;
  handles_before = cohort_live_handles();
  return 0;
}

static inline int same_handles(void **state) {
  (void)state;
  if (cohort_live_handles() == handles_before) return 0;
  print_error("%zu handles are alive, %zu were before\n", cohort_live_handles(), handles_before);
  return -1;
}

/* A float32 array with these values; with no axes, a scalar. */
static inline cohort_ndarray *floats(const float *values, const int64_t *shape, int32_t num_axes) {
  cohort_ndarray *array = NULL;
  size_t bytes = sizeof(float);
  int32_t axis;

  for (axis = 0; axis < num_axes; ++axis) bytes *= (size_t)shape[axis];
  ok(cohort_ndarray_from_host(values, bytes, shape, num_axes, COHORT_DTYPE_FLOAT32, NULL, &array));
  return array;
}

/* Checks the values of a float32 array, exactly. */
static inline void assert_floats(const cohort_ndarray *array, const float *values, size_t num_values) {
  float *found = malloc(num_values * sizeof(float) + 1);
  size_t i;

  assert_non_null(found);
  ok(cohort_ndarray_read(array, found, num_values * sizeof(float)));
  for (i = 0; i < num_values; ++i) {
    if (found[i] != values[i]) fail_msg("value %zu: expected %g, found %g", i, (double)values[i], (double)found[i]);
  }
  free(found);
}

/* Checks the shape of an array. */
static inline void assert_shape(const cohort_ndarray *array, const int64_t *shape, int32_t num_axes) {
  int64_t found[COHORT_MAX_AXES];
  int32_t found_axes = -2, axis;

  ok(cohort_ndarray_shape(array, found, COHORT_MAX_AXES, &found_axes));
  assert_int_equal(found_axes, num_axes);
  for (axis = 0; axis < num_axes; ++axis) assert_int_equal(found[axis], shape[axis]);
}

/* data -> fc (num_hidden 2) -> softmax, with its arguments data, fc_weight, fc_bias, softmax_label. */
static inline cohort_symbol *small_network(void) {
  const char *const key = "num_hidden", *const value = "2";
  cohort_symbol *data = NULL, *fc = NULL, *softmax = NULL;

  ok(cohort_symbol_variable("data", NULL, NULL, 0, &data));
  ok(cohort_symbol_create("FullyConnected", "fc", &key, &value, 1, &data, NULL, 1, &fc));
  ok(cohort_symbol_create("SoftmaxOutput", "softmax", NULL, NULL, 0, &fc, NULL, 1, &softmax));
  cohort_symbol_free(data);
  cohort_symbol_free(fc);
  return softmax;
}

/* A list of one descriptor. */
static inline cohort_descs *one_desc(const char *name, const int64_t *shape, int32_t num_axes) {
  cohort_descs *descs = NULL;

  ok(cohort_descs_create(&descs));
  ok(cohort_descs_add(descs, name, shape, num_axes, COHORT_DTYPE_NONE, NULL));
  return descs;
}

/* Binds that network on the first of test_contexts(): batch x 3 data, for training. */
static inline cohort_group *small_group(size_t num_contexts, int64_t batch) {
  static const char *const params[] = {"fc_weight", "fc_bias"};
  int64_t shape[2];
  cohort_symbol *symbol = small_network();
  cohort_descs *data, *label;
  cohort_group *group = NULL;

  shape[0] = batch;
  shape[1] = 3;
  data = one_desc("data", shape, 2);
  label = one_desc("softmax_label", shape, 1);
  ok(cohort_group_create(symbol, test_contexts(), num_contexts, data, label, params, 2, 1, NULL, &group));
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
  return group;
}

#endif
