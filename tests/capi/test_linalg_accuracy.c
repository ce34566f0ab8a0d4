/* SPDX-License-Identifier: Apache-2.0 */
/* Factorizations, inverses and triangular products reproduce the matrix to the precision of their type, for matrices of
 * all sizes and of every kind that makes such methods fail. */
#include <float.h>
#include <math.h>

#include "support/executor_tests.h"

enum { MOST = 100 };

static uint32_t drawn;

static double draw(void) { /* from -1 to 1 */
  drawn = drawn * 1664525u + 1013904223u;
  return (double)(drawn >> 8) / (1 << 23) - 1;
}

/* One matrix, as an array of either type, and back. */
static cohort_ndarray *array_from(const double *values, int rows, int cols, int32_t dtype) {
  static float singles[MOST * MOST];
  const int64_t shape[] = {rows, cols};
  const int count = rows * cols;
  cohort_ndarray *array = NULL;
  int i;

  for (i = 0; i < count; ++i) singles[i] = (float)values[i];
  if (dtype == COHORT_DTYPE_FLOAT32) {
    ok(cohort_ndarray_from_host(singles, (size_t)count * sizeof(float), shape, 2, dtype, NULL, &array));
  } else {
    ok(cohort_ndarray_from_host(values, (size_t)count * sizeof(double), shape, 2, dtype, NULL, &array));
  }
  return array;
}

static cohort_error *read_free(cohort_ndarray *array, double *to) {
  static float singles[MOST * MOST];
  cohort_error *error;
  int64_t size = 0, i;
  int32_t dtype = 0;

  ok(cohort_ndarray_size(array, &size));
  ok(cohort_ndarray_dtype(array, &dtype));
  if (dtype == COHORT_DTYPE_FLOAT64) {
    error = cohort_ndarray_read(array, to, (size_t)size * sizeof(double));
  } else {
    error = cohort_ndarray_read(array, singles, (size_t)size * sizeof(float));
    for (i = 0; i < size && !error; ++i) to[i] = singles[i];
  }
  cohort_ndarray_free(array);
  return error;
}

/* Applies an operator with up to four attributes, "key", "value", ..., NULL; frees the inputs. */
static cohort_error *try_apply(const char *op, const char *const *attrs, cohort_ndarray *a, cohort_ndarray *b,
                               double *first, double *second) {
  const char *keys[4], *values[4];
  cohort_ndarray *inputs[] = {a, b}, *output = NULL;
  cohort_arrays *results = NULL;
  cohort_error *error;
  size_t num = 0;

  for (; attrs && attrs[2 * num]; ++num) keys[num] = attrs[2 * num], values[num] = attrs[2 * num + 1];
  error = cohort_operator_invoke(op, keys, values, num, inputs, b ? 2 : 1, NULL, 0, NULL, &results);
  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  if (error) return error;
  ok(cohort_arrays_get(results, 0, &output));
  error = read_free(output, first);
  if (second && !error) {
    ok(cohort_arrays_get(results, 1, &output));
    error = read_free(output, second);
  }
  cohort_arrays_free(results);
  return error;
}

enum {
  RANDOM,
  GRADED,
  CLUSTERED,
  TWO_VALUES,
  RANK_ONE,
  DIAGONAL,
  ZEROS,
  ONES,
  TINY,
  HUGE_ONES,
  JOINED,
  BLOCKS,
  NUM_KINDS
};
static const char *const kinds[] = {"random", "graded", "clustered", "two values", "rank one", "diagonal",
                                    "zeros",  "ones",   "tiny",      "huge",       "joined",   "blocks"};

/* A symmetric matrix whose elements the type can represent. */
static void draw_symmetric(int kind, int n, int32_t dtype, double *a) {
  static double v[MOST];
  const int is_float = dtype == COHORT_DTYPE_FLOAT32;
  int i, j;

  for (i = 0; i < n; ++i) v[i] = draw();
  for (i = 0; i < n; ++i) {
    for (j = 0; j <= i; ++j) {
      double x = draw();

      if (kind == GRADED) x *= pow(10, -(i + j) * (is_float ? 0.1 : 0.5)); /* as D A D, with D over many decades */
      if (kind == CLUSTERED) x = (i == j) + x * (is_float ? 1e-7 : 1e-15);
      if (kind == TWO_VALUES) x = (i == j ? 1 : 0) - 2 * v[i] * v[j]; /* near a reflection */
      if (kind == RANK_ONE) x = v[i] * v[j];
      if (kind == DIAGONAL && i != j) x = 0;
      if (kind == ZEROS) x = 0;
      if (kind == ONES) x = 1;
      if (kind == TINY) x *= is_float ? 1e-36 : 1e-290;
      if (kind == HUGE_ONES) x *= is_float ? 1e36 : 1e300;
      if (kind == JOINED) x = i == j ? fabs(i % 21 - 10.0) : j + 1 < i ? 0 : i % 21 ? 1 : 1e-8; /* nearly equal pairs */
      if (kind == BLOCKS) x = j / 2 != i / 2 ? 0 : i == j ? 1 + i % 2 : 2;
      a[i * n + j] = a[j * n + i] = is_float ? (float)x : x;
    }
  }
}

static void holds_eigen(const double *a, const double *u, const double *values, int kind, int n, double epsilon) {
  double top = 0, norm = 0, worst = 0, skew = 0;
  int i, j, k;

  for (i = 0; i < n * n; ++i) top = fmax(top, fabs(a[i]));
  for (i = 0; i < n * n; ++i) norm += top > 0 ? a[i] / top * (a[i] / top) : 0;
  norm = sqrt(norm);
  for (i = 0; i < n; ++i) {
    double positive = 0, negative = 0;

    for (j = 0; j < n; ++j) {
      double product = 0, dot = 0;

      for (k = 0; k < n; ++k) product += top > 0 ? u[i * n + k] * (a[k * n + j] / top) : 0;
      for (k = 0; k < n; ++k) dot += u[i * n + k] * u[j * n + k];
      worst = fmax(worst, fabs(product - (top > 0 ? values[i] / top : values[i]) * u[i * n + j]));
      skew = fmax(skew, fabs(dot - (i == j)));
      positive = fmax(positive, u[i * n + j]);
      negative = fmax(negative, -u[i * n + j]);
    }
    if (!(positive >= negative * (1 - 8 * epsilon)) || (i > 0 && values[i] < values[i - 1])) {
      fail_msg("%s (%d, %d): vector %d has the wrong sign or place", kinds[kind], n, n, i);
    }
  }
  if (!(worst <= 2 * (4 + sqrt(n)) * norm * epsilon) || !(skew <= 4 * (2 + sqrt(n)) * epsilon)) {
    fail_msg("%s (%d, %d): residual %.3g, off orthogonal by %.3g, epsilon %.3g", kinds[kind], n, n, worst, skew,
             epsilon);
  }
}

static void eigenvectors_of_all_matrices(void **state) {
  static const int sizes[] = {1, 2, 3, 4, 7, 8, 9, 16, 17, 33, 64, MOST};
  static double a[MOST * MOST], u[MOST * MOST], values[MOST];
  size_t s;
  int kind, type;

  (void)state;
  for (s = 0; s < COUNT(sizes); ++s) {
    for (kind = 0; kind < NUM_KINDS; ++kind) {
      for (type = 0; type < 2; ++type) {
        const int32_t dtype = type ? COHORT_DTYPE_FLOAT64 : COHORT_DTYPE_FLOAT32;

        drawn = (uint32_t)(s * 100 + (size_t)kind);
        draw_symmetric(kind, sizes[s], dtype, a);
        ok(try_apply("_linalg_syevd", NULL, array_from(a, sizes[s], sizes[s], dtype), NULL, u, values));
        holds_eigen(a, u, values, kind, sizes[s], type ? DBL_EPSILON : FLT_EPSILON);
      }
    }
  }
}

static void no_numbers_have_no_eigenvectors(void **state) {
  static const double others[] = {NAN, INFINITY, -INFINITY};
  static double a[9], u[9], values[3];
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(others); ++i) {
    memset(a, 0, sizeof a);
    a[7] = others[i];
    fails(try_apply("_linalg_syevd", NULL, array_from(a, 3, 3, COHORT_DTYPE_FLOAT64), NULL, u, values),
          COHORT_ERROR_EXECUTION, "expected finite numbers");
    a[7] = 0;
    a[5] = others[i]; /* above the diagonal, where nothing is read */
    ok(try_apply("_linalg_syevd", NULL, array_from(a, 3, 3, COHORT_DTYPE_FLOAT64), NULL, u, values));
  }
}

/* L Q is the matrix, Q Q^T the identity. */
static void rows_are_made_orthonormal(void **state) {
  static const struct {
    int rows, cols;
    double scale;
  } cases[] = {{1, 1, 1},   {1, 9, 1},     {5, 5, 1},        {16, 20, 1},    {17, 17, 1},
               {50, 70, 1}, {100, 100, 1}, {20, 30, 1e-290}, {20, 30, 1e300}};
  static double a[MOST * MOST], q[MOST * MOST], l[MOST * MOST];
  size_t c;
  int i, j, k;

  (void)state;
  for (c = 0; c < COUNT(cases); ++c) {
    const int m = cases[c].rows, n = cases[c].cols;

    drawn = (uint32_t)c;
    for (i = 0; i < m * n; ++i) a[i] = draw() * cases[c].scale;
    ok(try_apply("_linalg_gelqf", NULL, array_from(a, m, n, COHORT_DTYPE_FLOAT64), NULL, q, l));
    for (i = 0; i < m; ++i) {
      for (j = 0; j < n; ++j) {
        double product = 0, dot = 0;

        for (k = 0; k < m; ++k) product += l[i * m + k] / cases[c].scale * q[k * n + j];
        for (k = 0; k < n && j < m; ++k) dot += q[i * n + k] * q[j * n + k];
        if (!(fabs(product - a[i * n + j] / cases[c].scale) <= 20 * n * DBL_EPSILON)) {
          fail_msg("(%d, %d): L Q at (%d, %d) is %g times the scale", m, n, i, j, product);
        }
        if (j < m && !(fabs(dot - (i == j)) <= 20 * n * DBL_EPSILON)) {
          fail_msg("(%d, %d): rows %d and %d of Q have the product %g", m, n, i, j, dot);
        }
        if (j > i && j < m) assert_true(l[i * m + j] == 0);
      }
    }
  }
}

/* Inverses and determinants of matrices that need pivots from any row. */
static void inverses_and_determinants_agree(void **state) {
  static const int sizes[] = {1, 2, 15, 16, 17, 32, 35, 64, MOST};
  static double a[MOST * MOST], inverse[MOST * MOST];
  size_t s;
  int i, j, k;

  (void)state;
  for (s = 0; s < COUNT(sizes); ++s) {
    const int n = sizes[s];
    double det = 0, det_inverse = 0, sign = 0, logarithm = 0, size = 0, worst = 0;

    drawn = (uint32_t)n;
    for (i = 0; i < n * n; ++i) a[i] = draw() * sqrt(8.0 / n);
    ok(try_apply("_linalg_inverse", NULL, array_from(a, n, n, COHORT_DTYPE_FLOAT64), NULL, inverse, NULL));
    for (i = 0; i < n * n; ++i) size = fmax(size, fabs(inverse[i]));
    for (i = 0; i < n; ++i) {
      for (j = 0; j < n; ++j) {
        double product = 0;

        for (k = 0; k < n; ++k) product += a[i * n + k] * inverse[k * n + j];
        worst = fmax(worst, fabs(product - (i == j)));
      }
    }
    if (!(worst <= 20 * n * fmax(size, 1) * DBL_EPSILON)) fail_msg("(%d, %d): A A^-1 is off by %g", n, n, worst);
    ok(try_apply("_linalg_det", NULL, array_from(a, n, n, COHORT_DTYPE_FLOAT64), NULL, &det, NULL));
    ok(try_apply("_linalg_det", NULL, array_from(inverse, n, n, COHORT_DTYPE_FLOAT64), NULL, &det_inverse, NULL));
    ok(try_apply("_linalg_slogdet", NULL, array_from(a, n, n, COHORT_DTYPE_FLOAT64), NULL, &sign, &logarithm));
    if (!(fabs(det * det_inverse - 1) <= 1e-10) || !(fabs(sign * exp(logarithm) / det - 1) <= 1e-10)) {
      fail_msg("(%d, %d): determinants %g, %g of the inverse, %g exp(%g)", n, n, det, det_inverse, sign, logarithm);
    }
    for (j = 0; j < n; ++j) a[(n - 1) * n + j] = n > 1 ? a[j] : 0; /* two equal rows, or a zero */
    ok(try_apply("_linalg_det", NULL, array_from(a, n, n, COHORT_DTYPE_FLOAT64), NULL, &det, NULL));
    assert_true(fabs(det) <= 1e-12);
  }
}

static void a_singular_matrix_has_no_inverse(void **state) {
  static double a[20 * 20], inverse[20 * 20];
  int i;

  (void)state;
  only_on_cpus();                             /* elsewhere it is NaN */
  for (i = 0; i < 19; ++i) a[i * 20 + i] = 1; /* and then nothing, in the second block of columns */
  fails(try_apply("_linalg_inverse", NULL, array_from(a, 20, 20, COHORT_DTYPE_FLOAT64), NULL, inverse, NULL),
        COHORT_ERROR_EXECUTION, "is singular");
}

/* op(A) B and B op(A) from one triangle of A; the other one is not read. */
static void products_read_one_triangle(void **state) {
  static const int sizes[] = {1, 5, 32, 33, 70};
  static double a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];
  size_t s;
  int which, i, j, k;

  (void)state;
  for (s = 0; s < COUNT(sizes); ++s) {
    for (which = 0; which < 8; ++which) {
      const int lower = which & 1, transpose = which >> 1 & 1, right = which >> 2, n = sizes[s];
      const int rows = right ? 7 : n, cols = right ? n : 7;
      const char *const attrs[] = {"lower",     lower ? "1" : "0", "transpose", transpose ? "1" : "0",
                                   "rightside", right ? "1" : "0", NULL};

      drawn = (uint32_t)(n * 8 + which);
      for (i = 0; i < n; ++i) {
        for (j = 0; j < n; ++j) a[i * n + j] = (lower ? j <= i : j >= i) ? draw() : NAN;
      }
      for (i = 0; i < rows * cols; ++i) b[i] = draw();
      ok(try_apply("_linalg_trmm", attrs, array_from(a, n, n, COHORT_DTYPE_FLOAT64),
                   array_from(b, rows, cols, COHORT_DTYPE_FLOAT64), c, NULL));
      for (i = 0; i < rows; ++i) {
        for (j = 0; j < cols; ++j) {
          double sum = 0;

          for (k = 0; k < n; ++k) {
            const double factor = right ? a[transpose ? j * n + k : k * n + j] : a[transpose ? k * n + i : i * n + k];
            if (!isnan(factor)) sum += factor * (right ? b[i * cols + k] : b[k * cols + j]);
          }
          if (!(fabs(sum - c[i * cols + j]) <= 1e-13)) {
            fail_msg("lower %d, transpose %d, right %d of (%d, %d): expected %g, found %g", lower, transpose, right, n,
                     n, sum, c[i * cols + j]);
          }
        }
      }
    }
  }
}

/* The same bits on any number of threads, for one matrix and for several. */
static void threads_change_no_bit(void **state) {
  static const char *const ops[] = {"_linalg_syevd", "_linalg_gelqf", "_linalg_inverse", "_linalg_slogdet"};
  static const char *const no_attrs[] = {NULL};
  static double a[5 * MOST * MOST], found[3][5 * MOST * MOST];
  size_t o, count, i;
  int threads;

  (void)state;
  for (i = 0; i < COUNT(a); ++i) a[i] = draw();
  for (o = 0; o < COUNT(ops); ++o) {
    for (count = 1; count <= 5; count += 4) {
      const size_t size = count * MOST * MOST;

      for (threads = 1; threads <= 3; ++threads) {
        cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
        cohort_descs *known = no_descs();
        cohort_executor *executor;
        cohort_ndarray *array, *output;

        options.num_threads = threads;
        add_typed(known, "a", SHAPE((int64_t)count, MOST, MOST), COHORT_DTYPE_FLOAT64);
        executor = simple_bind(node(ops[o], "op", no_attrs, INPUTS(variable("a"))), known, &options);
        array = arg_of(executor, "a");
        ok(cohort_ndarray_write(array, a, size * sizeof(double)));
        cohort_ndarray_free(array);
        ok(cohort_executor_forward(executor, 0));
        output = output_of(executor, 0);
        memset(found[threads - 1], 0, size * sizeof(double));
        ok(cohort_ndarray_read(output, found[threads - 1], o == 3 ? count * sizeof(double) : size * sizeof(double)));
        cohort_ndarray_free(output);
        cohort_executor_free(executor);
        assert_memory_equal(found[0], found[threads - 1], size * sizeof(double));
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(eigenvectors_of_all_matrices),     TEST(no_numbers_have_no_eigenvectors), TEST(rows_are_made_orthonormal),
      TEST(inverses_and_determinants_agree),  TEST(products_read_one_triangle),      TEST(threads_change_no_bit),
      TEST(a_singular_matrix_has_no_inverse),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
