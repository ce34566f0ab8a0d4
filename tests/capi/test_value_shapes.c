/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose output has as many rows as the values of an input say: applied at once and on tapes. */
#include "support/boundary.h"

static const int64_t four_by_two[] = {4, 2}, four[] = {4};
static const float rows[] = {0, 1, 2, 3, 4, 5, 6, 7};

static cohort_ndarray *typed(const float *values, const int64_t *shape, int32_t num_axes, int32_t dtype) {
  cohort_ndarray *plain = floats(values, shape, num_axes), *array = NULL;

  ok(cohort_ndarray_zeros(shape, num_axes, dtype, NULL, &array));
  ok(cohort_ndarray_copy_to(plain, array));
  cohort_ndarray_free(plain);
  return array;
}

/* Frees the inputs. */
static cohort_error *try_apply(cohort_tape *tape, const char *op, cohort_ndarray *a, cohort_ndarray *b,
                               cohort_ndarray **out_output) {
  cohort_ndarray *both[2];
  cohort_arrays *outputs = NULL;
  cohort_error *error;

  both[0] = a;
  both[1] = b;
  error = tape ? cohort_tape_invoke(tape, op, NULL, NULL, 0, both, b ? 2 : 1, NULL, 0, NULL, &outputs)
               : cohort_operator_invoke(op, NULL, NULL, 0, both, b ? 2 : 1, NULL, 0, NULL, &outputs);
  if (error) return error;
  ok(cohort_arrays_get(outputs, 0, out_output));
  cohort_arrays_free(outputs);
  return NULL;
}

static cohort_ndarray *apply(cohort_tape *tape, const char *op, cohort_ndarray *a, cohort_ndarray *b) {
  cohort_ndarray *output = NULL;

  ok(try_apply(tape, op, a, b, &output));
  return output;
}

/* Rows are taken where the mask is not 0, whatever its type; another mask gives another shape, and none none. */
static void a_mask_takes_rows(void **state) {
  static const int32_t dtypes[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_FLOAT64, COHORT_DTYPE_FLOAT16, COHORT_DTYPE_INT32,
                                   COHORT_DTYPE_INT64,   COHORT_DTYPE_INT8,    COHORT_DTYPE_UINT8,   COHORT_DTYPE_BOOL};
  static const float masks[3][4] = {{0, 1, 0, 1}, {1, 1, 1, 0}, {0, 0, 0, 0}}, last[] = {0, 1, 2, 3, 4, 5};
  static const float second[] = {2, 3, 6, 7};
  size_t d, m;

  (void)state;
  for (d = 0; d < NUM_OF(dtypes); ++d) {
    for (m = 0; m < NUM_OF(masks); ++m) {
      const int64_t shape[] = {m == 0 ? 2 : m == 1 ? 3 : 0, 2};
      cohort_ndarray *data = floats(rows, four_by_two, 2), *mask = typed(masks[m], four, 1, dtypes[d]);
      cohort_ndarray *taken = apply(NULL, "_contrib_boolean_mask", data, mask);

      assert_shape(taken, shape, 2);
      assert_floats(taken, m == 0 ? second : last, (size_t)(shape[0] * 2));
      cohort_ndarray_free(data);
      cohort_ndarray_free(mask);
      cohort_ndarray_free(taken);
    }
  }
}

/* What was queued before is waited for; a given array is written where it fits. */
static void a_mask_may_be_still_in_the_making(void **state) {
  static const float numbers[] = {-1, 1, -2, 2}, expected[] = {2, 3, 6, 7};
  const int64_t two_by_two[] = {2, 2}, three_by_two[] = {3, 2};
  cohort_ndarray *data = floats(rows, four_by_two, 2), *signs = floats(numbers, four, 1);
  cohort_ndarray *mask = apply(NULL, "relu", signs, NULL), *target = NULL, *inputs[2];
  cohort_arrays *results = NULL;

  (void)state;
  inputs[0] = data;
  inputs[1] = mask;
  ok(cohort_ndarray_zeros(two_by_two, 2, COHORT_DTYPE_FLOAT32, NULL, &target));
  ok(cohort_operator_invoke("_npi_boolean_mask", NULL, NULL, 0, inputs, 2, &target, 1, NULL, &results));
  cohort_arrays_free(results);
  assert_floats(target, expected, 4);
  cohort_ndarray_free(target);
  ok(cohort_ndarray_zeros(three_by_two, 2, COHORT_DTYPE_FLOAT32, NULL, &target));
  ok(cohort_operator_invoke("_npi_boolean_mask", NULL, NULL, 0, inputs, 2, &target, 1, NULL, &results));
  cohort_arrays_free(results);
  fails(cohort_ndarray_wait(target), COHORT_ERROR_EXECUTION, "index: expected 3 numbers that are not 0");
  cohort_ndarray_free(target);
  cohort_ndarray_free(data);
  cohort_ndarray_free(signs);
  cohort_ndarray_free(mask);
}

/* Gradients go back to the rows that were taken; the others get none. */
static void gradients_go_back_to_the_rows(void **state) {
  static const float masks[] = {0, 1, 0, 1}, expected[] = {0, 0, 4, 6, 0, 0, 12, 14}, zeros[8] = {0};
  static const cohort_grad_req write = COHORT_GRAD_WRITE;
  cohort_ndarray *data = floats(rows, four_by_two, 2), *mask = floats(masks, four, 1);
  cohort_ndarray *gradient = floats(zeros, four_by_two, 2), *taken, *squares;
  cohort_tape *tape = NULL;

  (void)state;
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, &data, &gradient, &write, 1));
  taken = apply(tape, "_contrib_boolean_mask", data, mask);
  squares = apply(tape, "square", taken, NULL);
  ok(cohort_tape_backward(tape, &squares, NULL, 1, NULL));
  assert_floats(gradient, expected, 8);
  cohort_tape_free(tape);
  cohort_ndarray_free(data);
  cohort_ndarray_free(mask);
  cohort_ndarray_free(gradient);
  cohort_ndarray_free(taken);
  cohort_ndarray_free(squares);
}

static void coordinates_are_those_of_elements_that_are_not_0(void **state) {
  static const float grid[] = {1, 0, 0, 0, -2, 0.5f, 0, 0}, expected[][2] = {{0, 0}, {2, 0}, {2, 1}};
  const int64_t three_by_two[] = {3, 2}, one_by_one[] = {1, 1};
  int64_t found[6];
  cohort_ndarray *x = floats(grid, four_by_two, 2), *where = apply(NULL, "_npx_nonzero", x, NULL);
  int32_t dtype = -1;
  size_t i;

  (void)state;
  assert_shape(where, three_by_two, 2);
  ok(cohort_ndarray_dtype(where, &dtype));
  assert_int_equal(dtype, COHORT_DTYPE_INT64);
  ok(cohort_ndarray_read(where, found, sizeof found));
  for (i = 0; i < 6; ++i) assert_int_equal(found[i], expected[i / 2][i % 2]);
  cohort_ndarray_free(where);
  cohort_ndarray_free(x);
  x = floats(grid, NULL, 0);
  where = apply(NULL, "_npx_nonzero", x, NULL);
  assert_shape(where, one_by_one, 2);
  cohort_ndarray_free(where);
  cohort_ndarray_free(x);
}

static void masks_that_do_not_fit_are_refused(void **state) {
  static const int64_t three[] = {3}, four_by_one[] = {4, 1};
  cohort_ndarray *data = floats(rows, four_by_two, 2), *shorter = floats(rows, three, 1),
                 *column = floats(rows, four_by_one, 2), *number = floats(rows, NULL, 0), *output = NULL;

  (void)state;
  fails(try_apply(NULL, "_contrib_boolean_mask", data, shorter, &output), COHORT_ERROR_SHAPE,
        "index: expected (4,), found (3,)");
  fails(try_apply(NULL, "_contrib_boolean_mask", data, column, &output), COHORT_ERROR_SHAPE, "index");
  fails(try_apply(NULL, "_contrib_boolean_mask", number, shorter, &output), COHORT_ERROR_SHAPE,
        "expected at least one axis");
  cohort_ndarray_free(data);
  cohort_ndarray_free(shorter);
  cohort_ndarray_free(column);
  cohort_ndarray_free(number);
}

/* A plan has one shape for each array: a network with such an operator is refused at bind, by its name. */
static void a_network_with_a_mask_is_not_bound(void **state) {
  cohort_symbol *inputs[2] = {NULL, NULL}, *mask = NULL;
  cohort_descs *known = one_desc("data", four_by_two, 2);
  cohort_executor *executor = NULL;

  (void)state;
  ok(cohort_symbol_variable("data", NULL, NULL, 0, &inputs[0]));
  ok(cohort_symbol_variable("index", NULL, NULL, 0, &inputs[1]));
  ok(cohort_symbol_create("_contrib_boolean_mask", "m", NULL, NULL, 0, inputs, NULL, 2, &mask));
  fails(cohort_executor_simple_bind(mask, NULL, known, NULL, &executor), COHORT_ERROR_SHAPE,
        "node 'm' (_contrib_boolean_mask): the shape of its output depends on values");
  cohort_symbol_free(inputs[0]);
  cohort_symbol_free(inputs[1]);
  cohort_symbol_free(mask);
  cohort_descs_free(known);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_mask_takes_rows),
      TEST(a_mask_may_be_still_in_the_making),
      TEST(gradients_go_back_to_the_rows),
      TEST(coordinates_are_those_of_elements_that_are_not_0),
      TEST(masks_that_do_not_fit_are_refused),
      TEST(a_network_with_a_mask_is_not_bound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
