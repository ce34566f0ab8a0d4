/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms, sketches, Hawkes processes and orthogonal factors give the same on a GPU as on a CPU, with their
 * gradients, in each type, for lengths and orders that golden cases leave out. */
#include "support/both_devices.h"

#define F32 COHORT_DTYPE_FLOAT32
#define F64 COHORT_DTYPE_FLOAT64
#define F16 COHORT_DTYPE_FLOAT16
#define BF16 COHORT_DTYPE_BFLOAT16

static const int32_t float_types[] = {F32, F64, F16, BF16};

static double step_of(int32_t dtype) { return dtype == F64 ? 1e-13 : dtype == F32 ? 1e-6 : dtype == F16 ? 1e-3 : 1e-2; }

static void transforms_of_any_length_are_alike(void **state) {
  static const int64_t lengths[] = {0, 1, 2, 3, 4, 7, 8, 13, 64, 97, 100, 128, 251};
  size_t n, t;

  (void)state;
  need_gpu();
  for (n = 0; n < COUNT(lengths); ++n) {
    for (t = 0; t < COUNT(float_types); ++t) {
      const operand numbers = {{2, 3, lengths[n]}, 3, float_types[t], spread, 0};
      const operand pairs = {{3, 2 * lengths[n]}, 2, float_types[t], spread, 0};
      const double bound = step_of(float_types[t]) * (double)(lengths[n] + 1);

      alike(differentiate_on, "_contrib_fft", NO_ATTRS, &numbers, 1, bound);
      alike(differentiate_on, "_contrib_ifft", NO_ATTRS, &pairs, 1, bound);
    }
  }
}

static void no_rows_are_alike(void **state) {
  const operand none = {{0, 3}, 2, F32, spread, 0}, pairs = {{0, 6}, 2, F32, spread, 0};

  (void)state;
  need_gpu();
  alike(differentiate_on, "_contrib_fft", NO_ATTRS, &none, 1, 0);
  alike(differentiate_on, "_contrib_ifft", NO_ATTRS, &pairs, 1, 0);
}

/* At most 2^22 numbers are transformed at a time. */
static void more_rows_than_are_transformed_together(void **state) {
  const cohort_context gpu = {COHORT_DEVICE_GPU, 0};
  const int64_t shape[] = {(1 << 22) + 3, 1};
  const size_t count = 2 * (size_t)shape[0];
  cohort_ndarray *ones = NULL, *pairs = NULL;
  cohort_arrays *results = NULL;
  float *found;
  size_t i;

  (void)state;
  need_gpu();
  found = malloc(count * sizeof(float));
  assert_non_null(found);
  ok(cohort_ndarray_full(shape, 2, F32, &gpu, 1, &ones));
  ok(cohort_operator_invoke("_contrib_fft", NULL, NULL, 0, &ones, 1, NULL, 0, NULL, &results));
  ok(cohort_arrays_get(results, 0, &pairs));
  ok(cohort_ndarray_read(pairs, found, count * sizeof(float)));
  for (i = 0; i < count; ++i) {
    if (found[i] != (i % 2 == 0 ? 1.0f : 0.0f)) fail_msg("number %d is %g", (int)i, (double)found[i]);
  }
  free(found);
  cohort_ndarray_free(pairs);
  cohort_arrays_free(results);
  cohort_ndarray_free(ones);
}

static double places(int64_t i) { return floor(2.5 + 2.4999 * spread(7 * i)); } /* 0 to 4 */
static double signs(int64_t i) { return spread(3 * i) < 0 ? -1 : 1; }

/* Bit for bit: both add in the same order. */
static void sketches_are_the_same(void **state) {
  static const int64_t widths[] = {0, 1, 2, 31, 200};
  static const char *const lengths[] = {"5", "9", "1000"};
  size_t w, t, n;

  (void)state;
  need_gpu();
  for (w = 0; w < COUNT(widths); ++w) {
    for (t = 0; t < COUNT(float_types); ++t) {
      for (n = 0; n < COUNT(lengths); ++n) {
        const operand in[] = {{{3, widths[w]}, 2, float_types[t], spread, 0},
                              {{1, widths[w]}, 2, float_types[t], places, 1},
                              {{1, widths[w]}, 2, float_types[t], signs, 1}};

        alike(differentiate_on, "_contrib_count_sketch", ATTRS("out_dim", lengths[n]), in, 3, 0);
      }
    }
  }
}

static cohort_error *try_on_gpu(const char *op, const char *const *attrs, const operand *in, size_t num_in) {
  static const cohort_context gpu = {COHORT_DEVICE_GPU, 0};
  const char *keys[4], *values[4];
  cohort_ndarray *inputs[MOST_OPERANDS] = {NULL}, *output = NULL;
  cohort_arrays *results = NULL;
  cohort_error *error;
  size_t num_attrs = 0, i;

  for (; attrs[2 * num_attrs]; ++num_attrs) {
    keys[num_attrs] = attrs[2 * num_attrs];
    values[num_attrs] = attrs[2 * num_attrs + 1];
  }
  for (i = 0; i < num_in; ++i) inputs[i] = array_on(&gpu, &in[i]);
  error = cohort_operator_invoke(op, keys, values, num_attrs, inputs, num_in, NULL, 0, NULL, &results);
  if (!error) {
    ok(cohort_arrays_get(results, 0, &output));
    error = cohort_ndarray_wait(output);
  }
  cohort_ndarray_free(output);
  cohort_arrays_free(results);
  for (i = 0; i < num_in; ++i) cohort_ndarray_free(inputs[i]);
  return error;
}

static double third_is_wild(int64_t i) { return i == 2 ? 1e6 : 0; }
static double third_is_below(int64_t i) { return i == 2 ? -1 : 0; }
static double third_is_nan(int64_t i) { return i == 2 ? NAN : 0; }

static void places_that_are_none_are_complained_of(void **state) {
  static double (*const wrong[])(int64_t) = {third_is_wild, third_is_below, third_is_nan};
  size_t w;

  (void)state;
  need_gpu();
  for (w = 0; w < COUNT(wrong); ++w) {
    const operand in[] = {{{2, 4}, 2, F32, spread, 0}, {{1, 4}, 2, F32, wrong[w], 1}, {{1, 4}, 2, F32, signs, 1}};

    fails(try_on_gpu("_contrib_count_sketch", ATTRS("out_dim", "7"), in, 3), COHORT_ERROR_EXECUTION,
          "h[2]: expected 0 to 6, found");
  }
}

static double positive(int64_t i) { return 0.1 + 0.4 * (1 + spread(i)); }
static double marks(int64_t i) { return floor(1.5 + 1.4999 * spread(5 * i)); } /* 0 to 2 */
static double valid_lengths(int64_t i) { return i == 1 ? 0 : i == 2 ? 99 : (double)i - 1; }
static double end_of_time(int64_t i) { return 20 + (double)i; }

static void likelihoods_are_alike(void **state) {
  static const int64_t counts[] = {0, 1, 4, 33}, events[] = {0, 1, 12};
  size_t r, e, t;

  (void)state;
  need_gpu();
  for (r = 0; r < COUNT(counts); ++r) {
    for (e = 0; e < COUNT(events); ++e) {
      for (t = 0; t < COUNT(float_types); ++t) {
        const int64_t n = counts[r], k = 3, length = events[e];
        const int32_t dtype = float_types[t];
        const operand in[] = {{{n, k}, 2, dtype, positive, 0},      {{k}, 1, dtype, positive, 0},
                              {{k}, 1, dtype, positive, 0},         {{n, k}, 2, dtype, positive, 0},
                              {{n, length}, 2, dtype, positive, 1}, {{n, length}, 2, COHORT_DTYPE_INT32, marks, 1},
                              {{n}, 1, dtype, valid_lengths, 1},    {{n}, 1, dtype, end_of_time, 1}};

        alike(differentiate_on, "_contrib_hawkesll", NO_ATTRS, in, 8, 30 * step_of(dtype));
      }
    }
  }
}

static double lengths_of_four(int64_t i) { return i == 0 ? 1 : 4; }

static void marks_that_are_none_are_complained_of(void **state) {
  const operand in[] = {{{2, 3}, 2, F32, positive, 0},     {{3}, 1, F32, positive, 0},
                        {{3}, 1, F32, positive, 0},        {{2, 3}, 2, F32, positive, 0},
                        {{2, 4}, 2, F32, positive, 1},     {{2, 4}, 2, COHORT_DTYPE_INT32, third_is_wild, 1},
                        {{2}, 1, F32, lengths_of_four, 1}, {{2}, 1, F32, end_of_time, 1}};
  operand all[8];

  (void)state;
  need_gpu();
  memcpy(all, in, sizeof all);
  ok(try_on_gpu("_contrib_hawkesll", NO_ATTRS, all, 8)); /* the third of the first row does not count */
  all[6].value = end_of_time;
  fails(try_on_gpu("_contrib_hawkesll", NO_ATTRS, all, 8), COHORT_ERROR_EXECUTION,
        "marks: expected 0 to 2, found 1000000 in row 0");
}

static int64_t rows, columns; /* of the next matrices */

/* Elements of well-conditioned matrices. */
static double leaning(int64_t i) {
  const int64_t at = i % (rows * columns);

  return spread(i) + (at / columns == at % columns ? 2 * sqrt((double)columns) : 0);
}

static void orthonormal_rows_are_alike(void **state) {
  static const int64_t shapes[][3] = {{0, 2, 2},  {3, 1, 1},   {2, 1, 5},   {2, 2, 2},   {3, 2, 7},
                                      {1, 5, 16}, {1, 16, 16}, {2, 17, 40}, {1, 35, 50}, {40, 3, 4}};
  size_t s, t;

  (void)state;
  need_gpu();
  for (s = 0; s < COUNT(shapes); ++s) {
    for (t = 0; t < 2; ++t) {
      const operand a = {{shapes[s][0], shapes[s][1], shapes[s][2]}, 3, float_types[t], leaning, 0};

      rows = shapes[s][1], columns = shapes[s][2];
      alike(differentiate_on, "_linalg_gelqf", NO_ATTRS, &a, 1, t ? 1e-13 : 1e-5);
    }
  }
}

/* Symmetric matrices with well separated eigenvalues. */
static double symmetric(int64_t i) {
  const int64_t at = i % (columns * columns), row = at / columns, column = at % columns;
  const int64_t low = row < column ? row : column, high = row < column ? column : row;

  return row == column ? 3 * (double)row + spread(i) : spread(i / (columns * columns) * 1000 + low * columns + high);
}
/* The identity minus a reflection: eigenvalues 2 and 0, both many times, so that the eigenvectors are not unique. */
static double repeated(int64_t i) {
  const int64_t at = i % (columns * columns), row = at / columns, column = at % columns;

  return (row == column ? 1 : 0) - (row + column == columns - 1 ? 1 : 0);
}

static void eigenvectors_are_alike(void **state) {
  static const int64_t shapes[][2] = {{0, 2}, {3, 0}, {3, 1}, {5, 2}, {2, 3}, {40, 4}, {2, 17}, {1, 40}};
  size_t s, t;

  (void)state;
  need_gpu();
  for (s = 0; s < COUNT(shapes); ++s) {
    for (t = 0; t < 2; ++t) {
      const operand a = {{shapes[s][0], shapes[s][1], shapes[s][1]}, 3, float_types[t], symmetric, 0};

      columns = shapes[s][1];
      alike(differentiate_on, "_linalg_syevd", NO_ATTRS, &a, 1, t ? 1e-11 : 1e-4);
    }
  }
}

/* Then only the eigenvalues are determined. */
static void repeated_eigenvalues_are_alike(void **state) {
  static const cohort_context cpu = {COHORT_DEVICE_CPU, 0}, gpu = {COHORT_DEVICE_GPU, 0};
  static const int64_t orders[] = {2, 3, 8, 21};
  static numbers expected, found;
  size_t s;
  int64_t i;

  (void)state;
  need_gpu();
  for (s = 0; s < COUNT(orders); ++s) {
    const operand a = {{orders[s], orders[s]}, 2, F64, repeated, 0};

    columns = orders[s];
    expected.count = found.count = 0;
    apply_on(&cpu, "_linalg_syevd", NO_ATTRS, &a, 1, &expected);
    apply_on(&gpu, "_linalg_syevd", NO_ATTRS, &a, 1, &found);
    assert_int_equal(found.count, expected.count);
    for (i = 0; i < columns; ++i) {
      const double want = expected.at[columns * columns + i], got = found.at[columns * columns + i];

      if (!(fabs(want - got) <= 1e-14)) fail_msg("order %d: expected %g, found %g", (int)columns, want, got);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(transforms_of_any_length_are_alike),
      TEST(no_rows_are_alike),
      TEST(more_rows_than_are_transformed_together),
      TEST(sketches_are_the_same),
      TEST(places_that_are_none_are_complained_of),
      TEST(likelihoods_are_alike),
      TEST(marks_that_are_none_are_complained_of),
      TEST(orthonormal_rows_are_alike),
      TEST(eigenvectors_are_alike),
      TEST(repeated_eigenvalues_are_alike),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
