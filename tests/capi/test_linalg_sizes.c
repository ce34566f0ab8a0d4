/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra on matrices of several sizes, which devices divide in several ways: results change along a direction
 * as the gradients say; and the memory it takes. */
#include <math.h>

#include "support/executor_tests.h"

enum { BATCH = 3, MOST = 48 };

static uint32_t drawn;

static double draw(void) { /* from -1 to 1 */
  drawn = drawn * 1664525u + 1013904223u;
  return (double)(drawn >> 8) / (1 << 23) - 1;
}

/* Matrices (n, n) that all operators accept: symmetric, with a dominant diagonal. */
static void draw_matrices(double *to, int n, double diagonal) {
  int b, i, j;

  for (b = 0; b < BATCH; ++b) {
    for (i = 0; i < n; ++i) {
      for (j = 0; j <= i; ++j) {
        const double value = draw() / n + (i == j ? diagonal : 0);
        to[(b * n + i) * n + j] = to[(b * n + j) * n + i] = value;
      }
    }
  }
}

static void put(const cohort_executor *executor, const char *name, const double *from, const double *along, double step,
                size_t num) {
  static double values[BATCH * MOST * MOST];
  cohort_ndarray *array = arg_of(executor, name);
  size_t i;

  for (i = 0; i < num; ++i) values[i] = from[i] + step * along[i];
  ok(cohort_ndarray_write(array, values, num * sizeof(double)));
  cohort_ndarray_free(array);
}

static double times(cohort_ndarray *array, const double *by) { /* the sum of products; frees the array */
  static double values[BATCH * MOST * MOST];
  int64_t size = 0, i;
  double sum = 0;

  ok(cohort_ndarray_size(array, &size));
  ok(cohort_ndarray_read(array, values, (size_t)size * sizeof(double)));
  cohort_ndarray_free(array);
  for (i = 0; i < size; ++i) sum += values[i] * by[i];
  return sum;
}

typedef struct operator_case {
  const char *op, *attrs[8];
  int num_inputs, by_column; /* the second input is (n, 5), or (5, n) */
} operator_case;

static const operator_case cases[] = {
    {"_linalg_potrf", {NULL}, 1, 0},
    {"_linalg_potri", {NULL}, 1, 0},
    {"_linalg_inverse", {NULL}, 1, 0},
    {"_linalg_det", {NULL}, 1, 0},
    {"_linalg_slogdet", {NULL}, 1, 0},
    {"_linalg_sumlogdiag", {NULL}, 1, 0},
    {"_linalg_extractdiag", {"offset", "-1", NULL}, 1, 0},
    {"_linalg_extracttrian", {NULL}, 1, 0},
    {"_linalg_extracttrian", {"lower", "False", "offset", "1", NULL}, 1, 0},
    {"_linalg_syrk", {"alpha", "0.5", NULL}, 1, 0},
    {"_linalg_syrk", {"transpose", "True", NULL}, 1, 0},
    {"_linalg_trsm", {NULL}, 2, 1},
    {"_linalg_trsm", {"transpose", "True", "alpha", "2", NULL}, 2, 1},
    {"_linalg_trsm", {"rightside", "True", "lower", "False", NULL}, 2, 0},
    {"_linalg_trsm", {"rightside", "True", "transpose", "True", NULL}, 2, 0},
    {"_linalg_trmm", {"lower", "False", NULL}, 2, 1},
    {"_linalg_trmm", {"rightside", "True", "transpose", "True", NULL}, 2, 0},
    {"_linalg_gemm2", {"transpose_a", "True", NULL}, 2, 1},
};

static void goes_as_its_gradient_says(const operator_case *c, int n) {
  static double a[BATCH * MOST * MOST], b[BATCH * MOST * 5], along_a[BATCH * MOST * MOST], along_b[BATCH * MOST * 5];
  static double head[2][BATCH * MOST * MOST];
  const double step = 1e-4;
  const size_t num_a = (size_t)(BATCH * n * n), num_b = (size_t)(BATCH * n * 5);
  cohort_descs *known = no_descs();
  cohort_symbol *symbol = c->num_inputs == 1 ? node(c->op, "op", c->attrs, INPUTS(variable("a")))
                                             : node(c->op, "op", c->attrs, INPUTS(variable("a"), variable("b")));
  cohort_executor *executor;
  cohort_ndarray *heads[2] = {NULL, NULL};
  double found[2] = {0, 0}, expected;
  size_t num_outputs = 0, i, k;
  int side;

  drawn = (uint32_t)n;
  draw_matrices(a, n, 2);
  draw_matrices(along_a, n, 0);
  for (i = 0; i < num_b; ++i) b[i] = draw(), along_b[i] = draw();
  add_typed(known, "a", SHAPE(BATCH, n, n), COHORT_DTYPE_FLOAT64);
  if (c->by_column) add_typed(known, "b", SHAPE(BATCH, n, 5), COHORT_DTYPE_FLOAT64);
  if (!c->by_column) add_typed(known, "b", SHAPE(BATCH, 5, n), COHORT_DTYPE_FLOAT64);
  executor = simple_bind_with(symbol, known, "write");
  ok(cohort_executor_num_arrays(executor, COHORT_EXECUTOR_OUTPUTS, &num_outputs));
  for (k = 0; k < num_outputs; ++k) {
    cohort_ndarray *output = output_of(executor, k);
    int64_t shape[COHORT_MAX_AXES], size = 1;
    int32_t axes = 0;

    ok(cohort_ndarray_shape(output, shape, COHORT_MAX_AXES, &axes));
    ok(cohort_ndarray_size(output, &size));
    for (i = 0; i < (size_t)size; ++i) head[k][i] = draw();
    ok(cohort_ndarray_from_host(head[k], (size_t)size * sizeof(double), shape, axes, COHORT_DTYPE_FLOAT64, NULL,
                                &heads[k]));
    cohort_ndarray_free(output);
  }
  for (side = 0; side < 3; ++side) { /* on both sides, then in the middle */
    const double at = side == 0 ? -step : side == 1 ? step : 0;

    put(executor, "a", a, along_a, at, num_a);
    if (c->num_inputs == 2) put(executor, "b", b, along_b, at, num_b);
    ok(cohort_executor_forward(executor, 1));
    for (k = 0; side < 2 && k < num_outputs; ++k) found[side] += times(output_of(executor, k), head[k]);
  }
  ok(cohort_executor_backward(executor, heads, num_outputs, 1));
  expected = times(grad_of(executor, "a"), along_a);
  if (c->num_inputs == 2) expected += times(grad_of(executor, "b"), along_b);
  found[0] = (found[1] - found[0]) / (2 * step);
  if (!(fabs(found[0] - expected) <= 1e-6 * fmax(1, fabs(expected)))) {
    fail_msg("%s of (%d, %d): expected %.12g along the direction, found %.12g", c->op, n, n, expected, found[0]);
  }
  for (k = 0; k < num_outputs; ++k) cohort_ndarray_free(heads[k]);
  cohort_executor_free(executor);
}

static void matrices_of_all_sizes_have_their_gradients(void **state) {
  const int sizes[] = {1, 7, 33, MOST};
  size_t i, s;

  (void)state;
  for (i = 0; i < COUNT(cases); ++i) {
    for (s = 0; s < COUNT(sizes); ++s) {
      if (sizes[s] > 1 || !strstr(cases[i].op, "extract")) goes_as_its_gradient_says(&cases[i], sizes[s]);
    }
  }
}

static cohort_device_memory_info memory_now(void) {
  cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;

  ok(cohort_device_memory(NULL, &info));
  return info;
}

/* An operator's scratch is for the matrices, rows or samples that it works on at the same time: one per thread. */
static void many_small_matrices_need_little_memory(void **state) {
  static const struct {
    const char *op;
    int64_t shape[3], label[2];
  } of[] = {
      {"_linalg_syevd", {20000, 3, 3}, {0, 0}},
      {"_linalg_gelqf", {20000, 3, 3}, {0, 0}},
      {"_contrib_fft", {200, 100, 9}, {0, 0}},
      {"CTCLoss", {20, 2000, 10}, {2000, 3}},
  };
  size_t i;

  (void)state;
  only_on_cpus();
  for (i = 0; i < COUNT(of); ++i) {
    const uint64_t bytes = (uint64_t)(of[i].shape[0] * of[i].shape[1] * of[i].shape[2]) * sizeof(float);
    cohort_ndarray *inputs[2] = {NULL, NULL}, *output = NULL;
    cohort_arrays *results = NULL;
    uint64_t before, peak;

    ok(cohort_ndarray_full(of[i].shape, 3, COHORT_DTYPE_FLOAT32, NULL, 1, &inputs[0]));
    ok(cohort_ndarray_full(of[i].label, 2, COHORT_DTYPE_FLOAT32, NULL, 1, &inputs[1]));
    ok(cohort_wait_all());
    before = memory_now().used_bytes;
    ok(cohort_device_reset_peak_memory(NULL));
    ok(cohort_operator_invoke(of[i].op, NULL, NULL, 0, inputs, of[i].label[0] ? 2 : 1, NULL, 0, NULL, &results));
    ok(cohort_arrays_get(results, 0, &output));
    ok(cohort_ndarray_wait(output));
    peak = memory_now().peak_bytes;
    if (peak > before + 2 * bytes + (1u << 20)) {
      fail_msg("%s of %d bytes takes %d beside them", of[i].op, (int)bytes, (int)(peak - before));
    }
    cohort_ndarray_free(output);
    cohort_arrays_free(results);
    cohort_ndarray_free(inputs[0]);
    cohort_ndarray_free(inputs[1]);
  }
}

/* 64 x 64 x 64 x 64 elements by rows are 16.777 million. */
static void operators_say_how_much_they_compute(void **state) {
  static const struct {
    const char *op, *attrs[3];
    int num_inputs;
    const char *flops;
  } of[] = {
      {"_linalg_gemm", {"transpose_a", "True", NULL}, 3, " 33.554 MFLOP"},
      {"_linalg_gemm2", {NULL}, 2, " 33.554 MFLOP"},
      {"_linalg_syrk", {NULL}, 1, " 33.554 MFLOP"},
      {"_linalg_trmm", {NULL}, 2, " 16.777 MFLOP"},
      {"_linalg_trsm", {"rightside", "True", NULL}, 2, " 16.777 MFLOP"},
      {"_linalg_potri", {NULL}, 1, " 16.777 MFLOP"},
      {"_linalg_inverse", {NULL}, 1, " 33.554 MFLOP"},
      {"_linalg_gelqf", {NULL}, 1, " 67.109 MFLOP"},
      {"_linalg_syevd", {NULL}, 1, " 150.995 MFLOP"},
  };
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(of); ++i) {
    static const char *const names[] = {"a", "b", "c"};
    cohort_symbol *inputs[4] = {NULL, NULL, NULL, NULL};
    cohort_descs *known = no_descs();
    cohort_executor *executor;
    const char *text = NULL;
    int k;

    for (k = 0; k < of[i].num_inputs; ++k) {
      inputs[k] = variable(names[k]);
      add_typed(known, names[k], SHAPE(64, 64, 64), COHORT_DTYPE_FLOAT32);
    }
    executor = simple_bind_with(node(of[i].op, "op", of[i].attrs, inputs), known, "null");
    ok(cohort_executor_debug_text(executor, &text));
    if (!strstr(text, of[i].flops)) fail_msg("%s: expected%s, found %s", of[i].op, of[i].flops, text);
    cohort_executor_free(executor);
  }
}

/* As in BLAS: an operand with factor 0 is not read. */
static void nothing_is_0_times_what_is_infinite(void **state) {
  static const char *const ops[] = {"_linalg_gemm2", "_linalg_syrk", "_linalg_trmm", "_linalg_trsm"};
  static const double values[] = {INFINITY, NAN, 1, 2};
  const char *const attr = "alpha", *const zero = "0";
  const int64_t shape[] = {2, 2};
  size_t o, i;

  (void)state;
  for (o = 0; o < COUNT(ops); ++o) {
    cohort_ndarray *inputs[2] = {NULL, NULL}, *output = NULL;
    cohort_arrays *results = NULL;
    double found[4];

    for (i = 0; i < 2; ++i) {
      ok(cohort_ndarray_from_host(values, sizeof values, shape, 2, COHORT_DTYPE_FLOAT64, NULL, &inputs[i]));
    }
    ok(cohort_operator_invoke(ops[o], &attr, &zero, 1, inputs, o == 1 ? 1 : 2, NULL, 0, NULL, &results));
    ok(cohort_arrays_get(results, 0, &output));
    ok(cohort_ndarray_read(output, found, sizeof found));
    for (i = 0; i < 4; ++i) {
      if (found[i] != 0) fail_msg("%s: expected 0, found %g", ops[o], found[i]);
    }
    cohort_ndarray_free(output);
    cohort_arrays_free(results);
    cohort_ndarray_free(inputs[0]);
    cohort_ndarray_free(inputs[1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(matrices_of_all_sizes_have_their_gradients),
      TEST(many_small_matrices_need_little_memory),
      TEST(operators_say_how_much_they_compute),
      TEST(nothing_is_0_times_what_is_infinite),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
