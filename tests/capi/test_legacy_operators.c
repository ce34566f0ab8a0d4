/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that MXNet's frontends apply imperatively only, into given outputs. */
#include <math.h>

#include "support/executor_tests.h"

static cohort_error *apply(const char *op, const char *key, const char *value, cohort_ndarray *const *inputs,
                           size_t num_inputs, cohort_ndarray **out) {
  cohort_arrays *found = NULL;
  cohort_error *error = cohort_operator_invoke(op, &key, &value, key ? 1 : 0, inputs, num_inputs, *out ? out : NULL,
                                               *out ? 1 : 0, NULL, &found);

  if (!error && !*out) ok(cohort_arrays_get(found, 0, out));
  cohort_arrays_free(found);
  return error;
}

static cohort_ndarray *zeros_of(const int64_t *shape, int32_t num_axes, int32_t dtype) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_zeros(shape, num_axes, dtype, NULL, &array));
  return array;
}

/* Casts the array to float32; frees it. */
static cohort_ndarray *as_floats(cohort_ndarray *array) {
  cohort_ndarray *result = NULL;

  ok(cohort_ndarray_cast(array, COHORT_DTYPE_FLOAT32, &result));
  cohort_ndarray_free(array);
  return result;
}

static void a_value_is_set_in_the_type_of_the_output(void **state) {
  cohort_ndarray *out = zeros_of(SHAPE(2, 2), COHORT_DTYPE_INT32), *none = NULL;

  (void)state;
  ok(apply("_set_value", "src", "2.7", NULL, 0, &out));
  holds_free(as_floats(out), 2, 2, 2, 2);
  fails(apply("_set_value", "src", "2.7", NULL, 0, &none), COHORT_ERROR_SHAPE, "unknown");
}

static void a_copy_takes_the_type_of_the_output(void **state) {
  cohort_ndarray *in = floats(SHAPE(3), FLOATS(1.5f, -2.5f, 3)), *out = zeros_of(SHAPE(3), COHORT_DTYPE_INT8),
                 *same = NULL;

  (void)state;
  ok(apply("_copyto", NULL, NULL, &in, 1, &out));
  holds_free(as_floats(out), 1, -2, 3);
  ok(apply("_copyto", NULL, NULL, &in, 1, &same));
  holds_free(same, 1.5f, -2.5f, 3);
  cohort_ndarray_free(in);
}

static void elements_of_rows_are_set_by_index(void **state) {
  cohort_ndarray *inputs[] = {counted(SHAPE(4, 2), 1), floats(SHAPE(4), FLOATS(9, 8, 7, 6)),
                              floats(SHAPE(4), FLOATS(1, 0, 2, NAN))};
  cohort_ndarray *out = NULL, *hot[] = {inputs[2], inputs[0]}, *in_place = inputs[0];
  size_t i;

  (void)state;
  ok(apply("_onehot_encode", NULL, NULL, hot, 2, &out));
  holds_free(out, 0, 1, 1, 0, 0, 0, 0, 0);
  out = NULL;
  ok(apply("fill_element_0index", NULL, NULL, inputs, 3, &out));
  holds_free(out, 0, 9, 8, 3, 4, 5, 6, 7);
  ok(apply("fill_element_0index", NULL, NULL, inputs, 3, &in_place));
  holds(inputs[0], 0, 9, 8, 3, 4, 5, 6, 7);
  out = NULL;
  fails(apply("fill_element_0index", NULL, NULL, (cohort_ndarray *[]){inputs[1], inputs[1], inputs[1]}, 3, &out),
        COHORT_ERROR_SHAPE, "rows");
  for (i = 0; i < COUNT(inputs); ++i) cohort_ndarray_free(inputs[i]);
}

/* Zeros have the type that the graph gives, not the default of another operator. */
static void zeros_take_the_type_of_the_graph(void **state) {
  cohort_symbol *sum =
      node("elemwise_add", "sum", NO_ATTRS,
           INPUTS(node("_zeros_without_dtype", "z", ATTRS("shape", "(2,)"), INPUTS(NULL)), variable("x")));
  cohort_descs *known = no_descs();
  cohort_executor *executor;
  cohort_ndarray *out, *none = NULL;

  (void)state;
  add_typed(known, "x", SHAPE(2), COHORT_DTYPE_FLOAT64);
  executor = simple_bind(sum, known, NULL);
  out = output_of(executor, 0);
  assert_int_equal(dtype_of(out), COHORT_DTYPE_FLOAT64);
  cohort_ndarray_free(out);
  cohort_executor_free(executor);
  fails(apply("_zeros_without_dtype", "dtype", "99", NULL, 0, &none), COHORT_ERROR_INVALID_ARGUMENT, "code of a type");
}

/* allclose for numbers that no golden case holds. */
static void nan_and_infinities_are_close_to_themselves(void **state) {
  static const struct {
    float a, b;
    const char *equal_nan;
    float close;
  } cases[] = {{NAN, NAN, "True", 1},     {NAN, NAN, "False", 0},
               {NAN, 1, "True", 0},       {INFINITY, INFINITY, "False", 1},
               {1, INFINITY, "True", 0},  {-INFINITY, INFINITY, "True", 0},
               {1, 1.000001f, "True", 1}, {1e-9f, -1e-9f, "True", 1},
               {1, 1.1f, "True", 0}};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(cases); ++i) {
    cohort_ndarray *inputs[] = {floats(SHAPE(1), &cases[i].a, 1), floats(SHAPE(1), &cases[i].b, 1)}, *out = NULL;

    ok(apply("_contrib_allclose", "equal_nan", cases[i].equal_nan, inputs, 2, &out));
    assert_int_equal(dtype_of(out), COHORT_DTYPE_UINT8);
    holds_free(as_floats(out), cases[i].close);
    cohort_ndarray_free(inputs[0]);
    cohort_ndarray_free(inputs[1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_value_is_set_in_the_type_of_the_output),   TEST(a_copy_takes_the_type_of_the_output),
      TEST(elements_of_rows_are_set_by_index),          TEST(zeros_take_the_type_of_the_graph),
      TEST(nan_and_infinities_are_close_to_themselves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
