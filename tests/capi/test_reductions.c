/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, argmax and softmax along lines of every length, contiguous and strided, against plain loops: the first of
 * equal elements counts, NaN wherever it is. */
#include <math.h>

#include "support/boundary.h"

enum { MOST = 1 << 17 };

static cohort_ndarray *applied(const char *op, const char *key, const char *value, cohort_ndarray *input) {
  cohort_arrays *outputs = NULL;
  cohort_ndarray *result = NULL;

  ok(cohort_operator_invoke(op, &key, &value, 1, &input, 1, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &result));
  cohort_arrays_free(outputs);
  return result;
}

static double reduced(const char *op, const float *x, int64_t length, int64_t stride) {
  double result = x[0];
  int64_t k, best = 0;

  if (strcmp(op, "sum") == 0) {
    for (k = 1; k < length; ++k) result += x[k * stride];
    return result;
  }
  if (strncmp(op, "arg", 3) == 0) {
    for (k = 1; k < length; ++k)
      if (op[4] == 'a' ? x[k * stride] > x[best * stride] : x[k * stride] < x[best * stride]) best = k;
    return (double)best;
  }
  for (k = 1; k < length; ++k) {
    const double at = x[k * stride];
    if (isnan(at) || (!isnan(result) && (op[1] == 'a' ? at > result : at < result))) result = at;
  }
  return result;
}

static void are_reduced(const char *dtype, const float *values, int64_t outer, int64_t length, int64_t inner) {
  static const char *const ops[] = {"sum", "max", "min", "argmax", "argmin"};
  static float found[MOST];
  const int64_t shape[] = {outer, length, inner}, count = outer * length * inner;
  cohort_ndarray *source = NULL, *data;
  int64_t o, i, k;
  size_t p;

  ok(cohort_ndarray_zeros(shape, 3, COHORT_DTYPE_FLOAT32, NULL, &source));
  ok(cohort_ndarray_write(source, values, (size_t)count * sizeof(float)));
  data = applied("Cast", "dtype", dtype, source);
  for (p = 0; p < NUM_OF(ops); ++p) {
    cohort_ndarray *result = applied(ops[p], "axis", "1", data), *floats = applied("Cast", "dtype", "float32", result);
    ok(cohort_ndarray_read(floats, found, (size_t)(outer * inner) * sizeof(float)));
    for (o = 0; o < outer; ++o) {
      for (i = 0; i < inner; ++i) {
        const double expected = reduced(ops[p], values + o * length * inner + i, length, inner);
        const float at = found[o * inner + i];
        assert_true(isnan(expected) ? isnan(at) : fabs(at - expected) <= 1e-5 * (1 + fabs(expected)));
      }
    }
    cohort_ndarray_free(result);
    cohort_ndarray_free(floats);
  }
  {
    cohort_ndarray *result = applied("softmax", "axis", "1", data),
                   *floats = applied("Cast", "dtype", "float32", result);
    ok(cohort_ndarray_read(floats, found, (size_t)count * sizeof(float)));
    for (o = 0; o < outer; ++o) {
      for (i = 0; i < inner; ++i) {
        const float *const x = values + o * length * inner + i, *const y = found + o * length * inner + i;
        const double top = reduced("max", x, length, inner);
        double sum = 0;
        for (k = 0; k < length; ++k) sum += exp(x[k * inner] - top);
        for (k = 0; k < length; ++k)
          assert_true(isnan(top) ? isnan(y[k * inner]) : fabs(y[k * inner] - exp(x[k * inner] - top) / sum) < 1e-6);
      }
    }
    cohort_ndarray_free(result);
    cohort_ndarray_free(floats);
  }
  cohort_ndarray_free(source);
  cohort_ndarray_free(data);
}

static void lines_of_every_length_are_reduced(void **state) {
  static const int64_t lengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 700}, inners[] = {1, 3, 60};
  static const char *const dtypes[] = {"float32", "float64"};
  static float values[MOST];
  size_t d, l, i;
  int64_t n;

  (void)state;
  for (d = 0; d < NUM_OF(dtypes); ++d) {
    for (l = 0; l < NUM_OF(lengths); ++l) {
      for (i = 0; i < NUM_OF(inners); ++i) {
        const int64_t count = 2 * lengths[l] * inners[i];
        uint32_t random = 99;
        for (n = 0; n < count; ++n) {
          random = random * 1664525 + 1013904223;
          values[n] = (float)((int)(random >> 22) - 512) / 64;
        }
        are_reduced(dtypes[d], values, 2, lengths[l], inners[i]);
      }
    }
  }
  /* Many results of few elements each, computed in pieces of lines. */
  for (n = 0; n < MOST; ++n) values[n] = (float)(n * 7919 % 1013) / 100;
  are_reduced("float32", values, 1, 5, 5000);
  are_reduced("float32", values, 7, 3, 2049);
}

static void nan_is_found_wherever_it_lies(void **state) {
  static const char *const dtypes[] = {"float32", "float64"};
  static const int64_t inners[] = {1, 5};
  static float values[MOST];
  const int64_t length = 150;
  int64_t at, n;
  size_t d, i;

  (void)state;
  for (d = 0; d < NUM_OF(dtypes); ++d) {
    for (i = 0; i < NUM_OF(inners); ++i) {
      for (at = 0; at < length; at += at < 3 || at > 140 ? 1 : 9) {
        for (n = 0; n < length * inners[i]; ++n) values[n] = (float)(n * 31 % 17);
        values[at * inners[i]] = NAN;
        are_reduced(dtypes[d], values, 1, length, inners[i]);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(lines_of_every_length_are_reduced),
      TEST(nan_is_found_wherever_it_lies),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
