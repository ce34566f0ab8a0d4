/* SPDX-License-Identifier: Apache-2.0 */
/* First and second gradients of powers and products at 0, where their formulas divide by 0. In float64. */
#include <math.h>
#include <stdio.h>

#include "support/executor_tests.h"

#define MOST 16

/* y = op(x), or op(x, exponent), with one attribute or none. */
typedef struct Function {
  const char *op, *key, *value;
  cohort_ndarray *x, *exponent;
} Function;

static cohort_ndarray *doubles(const double *values, int64_t rows, int64_t columns) {
  cohort_ndarray *array = NULL;
  const int64_t shape[] = {rows, columns};

  ok(cohort_ndarray_from_host(values, (size_t)(rows * columns) * sizeof(double), shape, 2, COHORT_DTYPE_FLOAT64, NULL,
                              &array));
  return array;
}

static cohort_ndarray *only(cohort_arrays *arrays) {
  cohort_ndarray *array = NULL;

  ok(cohort_arrays_get(arrays, 0, &array));
  cohort_arrays_free(arrays);
  return array;
}

static cohort_ndarray *apply(cohort_tape *tape, const char *op, const char *key, const char *value, cohort_ndarray *a,
                             cohort_ndarray *b) {
  cohort_ndarray *const inputs[] = {a, b};
  cohort_arrays *outputs = NULL;

  ok(cohort_tape_invoke(tape, op, &key, &value, key ? 1 : 0, inputs, b ? 2 : 1, NULL, 0, NULL, &outputs));
  return only(outputs);
}

static cohort_ndarray *gradient(cohort_tape *tape, cohort_ndarray *head, cohort_ndarray *variable, int create_graph) {
  cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
  cohort_arrays *gradients = NULL;

  options.create_graph = create_graph;
  ok(cohort_tape_grad(tape, &head, NULL, 1, &variable, 1, &options, &gradients));
  return only(gradients);
}

static void expect(const char *what, cohort_ndarray *array, const double *expected, size_t count) {
  double found[MOST];
  size_t i;

  ok(cohort_ndarray_read(array, found, count * sizeof(double)));
  for (i = 0; i < count; ++i) {
    if (fabs(found[i] - expected[i]) <= 1e-12 * fabs(expected[i])) continue;
    fail_msg("%s, element %zu: expected %g, found %g", what, i, expected[i], found[i]);
  }
}

/* Checks the gradients of y in x, by kernels and as a graph, and those of the sum of weights times the first ones. */
static void check(const Function *of, const double *weights, const double *first, const double *second, int64_t rows,
                  int64_t columns) {
  const size_t count = (size_t)(rows * columns);
  cohort_tape *tape = NULL;
  cohort_ndarray *y, *slope, *weight = doubles(weights, rows, columns), *weighted;
  char what[64];

  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, &of->x, NULL, NULL, 1));
  y = apply(tape, of->op, of->key, of->value, of->x, of->exponent);
  snprintf(what, sizeof(what), "%s %s, by kernels", of->op, of->value ? of->value : "");
  slope = gradient(tape, y, of->x, 0);
  expect(what, slope, first, count);
  cohort_ndarray_free(slope);
  cohort_ndarray_free(y);

  y = apply(tape, of->op, of->key, of->value, of->x, of->exponent);
  snprintf(what, sizeof(what), "%s %s, as a graph", of->op, of->value ? of->value : "");
  slope = gradient(tape, y, of->x, 1);
  expect(what, slope, first, count);
  weighted = apply(tape, "elemwise_mul", NULL, NULL, slope, weight);
  cohort_ndarray_free(slope);
  slope = gradient(tape, weighted, of->x, 0);
  snprintf(what, sizeof(what), "%s %s, second", of->op, of->value ? of->value : "");
  expect(what, slope, second, count);
  cohort_ndarray_free(slope);
  cohort_ndarray_free(weighted);
  cohort_ndarray_free(weight);
  cohort_ndarray_free(y);
  cohort_tape_free(tape);
}

/* DEF-74: x ^ 0 and x ^ 1 have slopes of 0 and 1, and no curvature, at 0 as elsewhere. */
static void powers_of_zero_and_one(void **state) {
  static const char *const forms[] = {"_power_scalar", "_power", "broadcast_power"};
  static const char *const exponents[] = {"0", "1", "2", "3"};
  static const double x[] = {0, 2, -0.0}, weights[] = {1, 10, 100};
  static const double first[4][3] = {{0, 0, 0}, {1, 1, 1}, {0, 4, 0}, {0, 12, 0}};
  static const double second[4][3] = {{0, 0, 0}, {0, 0, 0}, {2, 20, 200}, {0, 120, 0}};
  size_t form, i;

  (void)state;
  for (form = 0; form < COUNT(forms); ++form) {
    for (i = 0; i < COUNT(exponents); ++i) {
      const double exponent = (double)i;
      const double all[] = {exponent, exponent, exponent};
      Function of = {forms[form], NULL, NULL, doubles(x, 1, 3), NULL};

      if (form == 0) of.key = "scalar", of.value = exponents[i];
      if (form == 1) of.exponent = doubles(all, 1, 3);
      if (form == 2) of.exponent = doubles(&exponent, 1, 1);
      check(&of, weights, first[i], second[i], 1, 3);
      cohort_ndarray_free(of.x);
      cohort_ndarray_free(of.exponent);
    }
  }
}

/* The mixed second gradient of a ^ b at b = 0 is 1 / a. */
static void a_power_of_zero_depends_on_its_exponent(void **state) {
  const double two = 2, zero = 0, half = 0.5;
  cohort_ndarray *a = doubles(&two, 1, 1), *b = doubles(&zero, 1, 1), *y, *slope, *mixed;
  cohort_ndarray *variables[2];
  cohort_tape *tape = NULL;

  (void)state;
  variables[0] = a;
  variables[1] = b;
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, variables, NULL, NULL, 2));
  y = apply(tape, "_power", NULL, NULL, a, b);
  slope = gradient(tape, y, a, 1);
  mixed = gradient(tape, slope, b, 0);
  expect("mixed", mixed, &half, 1);
  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  cohort_ndarray_free(y);
  cohort_ndarray_free(slope);
  cohort_ndarray_free(mixed);
  cohort_tape_free(tape);
}

/* DEF-75: the slope of a product in a zero is the product of the others. */
static void products_of_zeros(void **state) {
  static const char *const ops[] = {"prod", "nanprod"};
  static const double x[] = {0, 2, 3, 0, 0, 5, 0, 0, 0, 4, 5, 6},
                      weights[] = {1, 10, 100, 1, 10, 100, 1, 1, 1, 1, 10, 100};
  static const double first[] = {6, 0, 0, 0, 0, 0, 0, 0, 0, 30, 24, 20};
  static const double second[] = {230, 3, 2, 50, 5, 0, 0, 0, 0, 560, 406, 45};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(ops); ++i) {
    const Function of = {ops[i], "axis", "1", doubles(x, 4, 3), NULL};
    double transposed[12], transposed_weights[12], transposed_first[12], transposed_second[12];
    Function columns = {ops[i], "axis", "0", NULL, NULL};
    size_t k;

    check(&of, weights, first, second, 4, 3);
    for (k = 0; k < 12; ++k) {
      const size_t to = k % 3 * 4 + k / 3;

      transposed[to] = x[k], transposed_weights[to] = weights[k], transposed_first[to] = first[k],
      transposed_second[to] = second[k];
    }
    columns.x = doubles(transposed, 3, 4);
    check(&columns, transposed_weights, transposed_first, transposed_second, 3, 4);
    cohort_ndarray_free(of.x);
    cohort_ndarray_free(columns.x);
  }
}

/* NaN counts as 1, and has no slope. */
static void products_that_skip_nan(void **state) {
  static const double x[] = {0, NAN, 3, 2, 0, NAN, 0, 5}, weights[] = {1, 10, 100, 1000, 1, 10, 100, 1000};
  static const double first[] = {6, 0, 0, 0, 0, 0, 0, 0};
  static const double second[] = {3200, 0, 2, 3, 500, 0, 5, 0};
  const Function of = {"nanprod", "axis", "1", doubles(x, 2, 4), NULL};

  (void)state;
  check(&of, weights, first, second, 2, 4);
  cohort_ndarray_free(of.x);
}

/* In every type, over all axes and some. */
static void products_of_every_type(void **state) {
  static const int32_t types[] = {COHORT_DTYPE_FLOAT16, COHORT_DTYPE_BFLOAT16, COHORT_DTYPE_FLOAT32,
                                  COHORT_DTYPE_FLOAT64};
  static const char *const ops[] = {"prod", "nanprod"};
  size_t t, i;

  (void)state;
  for (t = 0; t < COUNT(types); ++t) {
    for (i = 0; i < COUNT(ops); ++i) {
      cohort_tape *tape = NULL;
      cohort_ndarray *x = floats(SHAPE(2, 2, 2), FLOATS(1, 2, 3, 4, 0, 5, 2, 3)), *typed = NULL, *y, *slope,
                     *wide = NULL;

      ok(cohort_ndarray_cast(x, types[t], &typed));
      ok(cohort_tape_create(&tape));
      ok(cohort_tape_mark(tape, &typed, NULL, NULL, 1));
      y = apply(tape, ops[i], "axis", "(0, 2)", typed, NULL);
      slope = gradient(tape, y, typed, 0);
      ok(cohort_ndarray_cast(slope, COHORT_DTYPE_FLOAT32, &wide));
      holds_free(wide, 0, 0, 24, 18, 10, 0, 36, 24);
      cohort_ndarray_free(slope);
      cohort_ndarray_free(y);
      y = apply(tape, ops[i], NULL, NULL, typed, NULL);
      slope = gradient(tape, y, typed, 0);
      ok(cohort_ndarray_cast(slope, COHORT_DTYPE_FLOAT32, &wide));
      holds_free(wide, 0, 0, 0, 0, 720, 0, 0, 0);
      cohort_ndarray_free(slope);
      cohort_ndarray_free(y);
      cohort_ndarray_free(x);
      cohort_ndarray_free(typed);
      cohort_tape_free(tape);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(powers_of_zero_and_one), TEST(a_power_of_zero_depends_on_its_exponent),
      TEST(products_of_zeros),      TEST(products_that_skip_nan),
      TEST(products_of_every_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
