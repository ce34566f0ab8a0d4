/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of several weights at once, and operators that only change arrays in place: cases that golden cases do not
 * hold. */
#include <math.h>

#include "support/executor_tests.h"

static cohort_error *apply(const char *op, const char *const *attrs, cohort_ndarray *const *inputs, size_t num_inputs,
                           cohort_ndarray *const *outputs, size_t num_outputs) {
  const char *keys[8], *values[8];
  cohort_arrays *found = NULL;
  cohort_error *error;
  size_t num_attrs = 0;

  for (; attrs[2 * num_attrs]; ++num_attrs) {
    keys[num_attrs] = attrs[2 * num_attrs];
    values[num_attrs] = attrs[2 * num_attrs + 1];
  }
  error = cohort_operator_invoke(op, keys, values, num_attrs, inputs, num_inputs, outputs, num_outputs, NULL, &found);
  if (!error) {
    size_t num = 99;

    ok(cohort_arrays_num(found, &num));
    assert_int_equal(num, num_outputs);
  }
  cohort_arrays_free(found);
  return error;
}

static void free_all(cohort_ndarray *const *arrays, size_t num) {
  size_t i;

  for (i = 0; i < num; ++i) cohort_ndarray_free(arrays[i]);
}

/* Arrays of any type become zeros; there is no output. */
static void arrays_are_reset_in_place(void **state) {
  cohort_ndarray *arrays[3] = {counted(SHAPE(2, 3), 1), counted(SHAPE(0), 1), NULL}, *whole = NULL;

  (void)state;
  ok(cohort_ndarray_cast(arrays[0], COHORT_DTYPE_INT32, &arrays[2]));
  ok(apply("reset_arrays", ATTRS("num_arrays", "3"), arrays, 3, NULL, 0));
  holds(arrays[0], 0, 0, 0, 0, 0, 0);
  ok(cohort_ndarray_cast(arrays[2], COHORT_DTYPE_FLOAT32, &whole));
  holds_free(whole, 0, 0, 0, 0, 0, 0);
  free_all(arrays, 3);
}

/* A symbol without outputs cannot be bound. */
static void a_symbol_has_outputs(void **state) {
  const char *const key = "num_arrays", *const value = "1";
  cohort_symbol *data = variable("data"), *symbol = NULL;

  (void)state;
  fails(cohort_symbol_create("reset_arrays", "r", &key, &value, 1, &data, NULL, 1, &symbol),
        COHORT_ERROR_INVALID_ARGUMENT, "no outputs");
  cohort_symbol_free(data);
}

/* h = h + mean(g^2) for each row; w - lr g / sqrt(h + epsilon). */
static void rows_share_a_history(void **state) {
  cohort_ndarray *arrays[] = {floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)), floats(SHAPE(2, 2), FLOATS(2, -4, 100, 2)),
                              floats(SHAPE(2, 1), FLOATS(6, 0))};

  (void)state;
  ok(apply("_contrib_group_adagrad_update",
           ATTRS("lr", "0.5", "rescale_grad", "0.5", "clip_gradient", "1.5", "epsilon", "0.25"), arrays, 3, arrays, 1));
  holds(arrays[2], 6 + (1 + 2.25f) / 2, (2.25f + 1) / 2);
  holds(arrays[0], 1 - 0.5f / sqrtf(7.875f), 2 + 0.75f / sqrtf(7.875f), 3 - 0.75f / sqrtf(1.875f),
        4 - 0.5f / sqrtf(1.875f));
  free_all(arrays, 3);
}

/* A scale that is 0, infinite or NaN means that the step must be skipped. */
static void a_scale_that_is_no_number_changes_nothing(void **state) {
  static const float scales[] = {0, INFINITY, NAN};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(scales); ++i) {
    cohort_ndarray *arrays[] = {counted(SHAPE(3), 1), counted(SHAPE(3), 2), counted(SHAPE(3), 3), counted(SHAPE(3), 4),
                                floats(SHAPE(1), &scales[i], 1)};

    ok(apply("_multi_adamw_update", ATTRS("lrs", "(0.1,)", "wds", "(0.1,)", "etas", "(1,)"), arrays, 5, arrays, 1));
    holds(arrays[0], 0, 1, 2);
    holds(arrays[2], 0, 3, 6);
    holds(arrays[3], 0, 4, 8);
    free_all(arrays, 5);
  }
}

static void lists_and_inputs_must_be_as_many_as_weights(void **state) {
  cohort_ndarray *arrays[] = {counted(SHAPE(3), 1), counted(SHAPE(3), 2), counted(SHAPE(2), 3), counted(SHAPE(2), 4)};

  (void)state;
  fails(
      apply("multi_sgd_update", ATTRS("lrs", "(0.1,)", "wds", "(0.1, 0.1)", "num_weights", "2"), arrays, 4, arrays, 2),
      COHORT_ERROR_INVALID_ARGUMENT, "'lrs': expected 2 numbers, one for each weight, found 1");
  fails(apply("_multi_lamb_update",
              ATTRS("learning_rates", "(0.1,)", "wds", "(0.1,)", "step_count", "(1, 2)", "num_tensors", "1"), arrays, 4,
              arrays, 1),
        COHORT_ERROR_INVALID_ARGUMENT, "'step_count': expected 1 numbers");
  fails(apply("preloaded_multi_sgd_update", ATTRS("num_weights", "2"), arrays, 4, arrays, 2), COHORT_ERROR_SHAPE,
        "expected 2 inputs for each of 2 weights and 2 more, found 4");
  fails(apply("preloaded_multi_sgd_update", ATTRS("num_weights", "1"), arrays, 4, arrays, 1), COHORT_ERROR_SHAPE,
        "numbers");
  fails(apply("multi_sgd_update", ATTRS("lrs", "()", "wds", "()", "num_weights", "0"), arrays, 4, arrays, 1),
        COHORT_ERROR_INVALID_ARGUMENT, "num_weights");
  free_all(arrays, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arrays_are_reset_in_place),
      TEST(a_symbol_has_outputs),
      TEST(rows_share_a_history),
      TEST(a_scale_that_is_no_number_changes_nothing),
      TEST(lists_and_inputs_must_be_as_many_as_weights),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
