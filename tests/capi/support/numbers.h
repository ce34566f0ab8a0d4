/* SPDX-License-Identifier: Apache-2.0 */
/* The values of float32 arrays, and their rounding to bfloat16. */
#ifndef COHORT_TESTS_NUMBERS_H
#define COHORT_TESTS_NUMBERS_H

#include "support/group_tests.h"

/* How many numbers a float32 array has. */
static inline size_t size_of(const cohort_ndarray *array) {
  cohort_dtype type = COHORT_DTYPE_NONE;
  int64_t size = 0;

  ok(cohort_ndarray_dtype(array, &type));
  assert_int_equal(type, COHORT_DTYPE_FLOAT32);
  ok(cohort_ndarray_size(array, &size));
  return (size_t)size;
}

/* An array's numbers, to be freed; frees the array. */
static inline float *read_free(cohort_ndarray *array, size_t *count) {
  float *values;

  *count = size_of(array);
  values = malloc(*count * sizeof(*values));
  assert_non_null(values);
  ok(cohort_ndarray_read(array, values, *count * sizeof(*values)));
  cohort_ndarray_free(array);
  return values;
}

/* The nearest bfloat16, ties to even. */
static inline float rounded(float value) {
  uint32_t bits;

  memcpy(&bits, &value, sizeof(bits));
  bits += 0x7fff + ((bits >> 16) & 1);
  bits &= 0xffff0000u;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

#endif
