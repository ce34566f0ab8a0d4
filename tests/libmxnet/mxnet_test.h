/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of libmxnet.so: expectations on answers, arrays from literals, files in a folder of their own. */
#ifndef COHORT_TESTS_MXNET_TEST_H
#define COHORT_TESTS_MXNET_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cohort/cohort.h"
#include "mxnet/c_api.h"
#include "mxnet/c_predict_api.h"

/* Fails the test with MXNet's last error if the call failed. */
#define ok(call) expect_success((call), #call, __FILE__, __LINE__)
/* Fails the test unless the call failed with a message that contains `part`. */
#define fails(call, part) expect_failure((call), (part), #call, __FILE__, __LINE__)

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_test, end_test)
#define NUM_OF(array) (sizeof(array) / sizeof((array)[0]))

static inline void expect_success(int answer, const char *call, const char *file, int line) {
  if (answer == 0) return;
  print_error("%s: %s\n", call, MXGetLastError());
  _fail(file, line);
}

static inline void expect_failure(int answer, const char *part, const char *call, const char *file, int line) {
  if (answer == -1 && strstr(MXGetLastError(), part)) return;
  print_error("%s: expected -1 and \"%s\", found %d and \"%s\"\n", call, part, answer, MXGetLastError());
  _fail(file, line);
}

static size_t handles_before;
static char test_folder[512];

static inline int begin_test(void **state) {
  const char *const folder = getenv("TMPDIR");

  (void)state;
  handles_before = cohort_live_handles();
  snprintf(test_folder, sizeof test_folder, "%.400s/libmxnet-XXXXXX", folder ? folder : "/tmp");
  return mkdtemp(test_folder) ? 0 : -1;
}

/* The number of the library's live handles must be the same after a test as before. */
static inline int end_test(void **state) {
  char command[600];

  (void)state;
  sprintf(command, "rm -rf '%s'", test_folder);
  if (system(command) != 0) return -1;
  if (cohort_live_handles() == handles_before) return 0;
  print_error("%zu handles are alive, %zu were before\n", cohort_live_handles(), handles_before);
  return -1;
}

/* The path of a file in the test's folder; valid until four more were asked for. */
static inline const char *path_of(const char *name) {
  static char paths[4][600];
  static int next;
  char *const path = paths[next++ % 4];

  sprintf(path, "%s/%.40s", test_folder, name);
  return path;
}

static inline const char *write_file(const char *name, const void *bytes, size_t num_bytes) {
  const char *const path = path_of(name);
  FILE *const file = fopen(path, "wb");

  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, num_bytes, file), num_bytes);
  assert_int_equal(fclose(file), 0);
  return path;
}

/* Reads a whole file, which the caller frees. */
static inline char *read_file(const char *path, size_t *num_bytes) {
  FILE *const file = fopen(path, "rb");
  char *const bytes = malloc(1 << 20);

  assert_non_null(file);
  assert_non_null(bytes);
  *num_bytes = fread(bytes, 1, 1 << 20, file);
  assert_true(*num_bytes < 1 << 20);
  fclose(file);
  return bytes;
}

/* A float32 array on cpu(device). */
static inline NDArrayHandle floats_on(int device, const float *values, const uint32_t *shape, uint32_t num_axes) {
  NDArrayHandle array = NULL;
  size_t num = 1;
  uint32_t axis;

  for (axis = 0; axis < num_axes; ++axis) num *= shape[axis];
  ok(MXNDArrayCreateEx(shape, num_axes, 1, device, 0, 0, &array));
  ok(MXNDArraySyncCopyFromCPU(array, values, num));
  return array;
}

static inline NDArrayHandle row_of(const float *values, uint32_t num) { return floats_on(0, values, &num, 1); }

/* Checks the values of a float32 array, exactly. */
static inline void assert_floats(NDArrayHandle array, const float *values, size_t num_values) {
  float *const found = malloc(num_values * sizeof(float) + 1);
  size_t i;

  assert_non_null(found);
  ok(MXNDArraySyncCopyToCPU(array, found, num_values));
  for (i = 0; i < num_values; ++i) {
    if (found[i] != values[i]) fail_msg("value %zu: expected %g, found %g", i, (double)values[i], (double)found[i]);
  }
  free(found);
}

/* The same; frees the array. */
static inline void take_floats(NDArrayHandle array, const float *values, size_t num_values) {
  assert_floats(array, values, num_values);
  ok(MXNDArrayFree(array));
}

static inline void assert_shape(NDArrayHandle array, const int *shape, int num_axes) {
  const int *found = NULL;
  int num_found = -2, axis;

  ok(MXNDArrayGetShapeEx(array, &num_found, &found));
  assert_int_equal(num_found, num_axes);
  for (axis = 0; axis < num_axes; ++axis) assert_int_equal(found[axis], shape[axis]);
}

#endif /* COHORT_TESTS_MXNET_TEST_H */
