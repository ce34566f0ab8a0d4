/* SPDX-License-Identifier: Apache-2.0 */
/* The state after an error: ERR-07 to ERR-09. */
#include "support/executor_tests.h"

/* Checks the outputs of the latest pass of bind_regression() over these rows. */
static void outputs_stand(const cohort_group *group) {
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 1, 10, 11, 2);
}

/* ERR-09: a call that fails leaves parameters, batch, binding and metric unchanged, even if it fails at the last of
 * several steps. */
static void a_call_that_fails_changes_nothing(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_descs *data = desc("data", SHAPE(6, 3), NULL), *label = desc("label", SHAPE(6, 1), NULL);
  cohort_descs *fits = desc("data", SHAPE(6, 2), NULL), *odd = desc("label", SHAPE(5, 1), NULL);
  cohort_arrays *params = named("fc_weight", floats(SHAPE(1, 2), FLOATS(7, 7)));
  cohort_ndarray *batch = floats(SHAPE(4, 2), FLOATS(5, 5, 5, 5, 5, 5, 5, 5)), *labels[2];
  cohort_metric *metric = NULL;
  int64_t batch_size = 0;
  double value = 0;

  (void)state;
  forward(group, floats(SHAPE(4, 2), FLOATS(1, 0, 0, 1, 1, 1, 2, 0)), floats(SHAPE(4, 1), FLOATS(0, 0, 0, 0)), 1);
  add_named(params, "label", floats(SHAPE(9), FLOATS(0, 0, 0, 0, 0, 0, 0, 0, 0)));
  fails(cohort_group_set_params(group, params, NULL, 0), COHORT_ERROR_SHAPE, "label");
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 1, 10);
  labels[0] = floats(SHAPE(3, 1), FLOATS(1, 1, 1));
  fails(cohort_group_load(group, &batch, 1, labels, 1), COHORT_ERROR_SHAPE, "label");
  outputs_stand(group);
  fails(cohort_group_reshape(group, data, label), COHORT_ERROR_SHAPE, "fc_weight");
  fails(cohort_group_reshape(group, fits, odd), COHORT_ERROR_SHAPE, "label");
  fails(cohort_group_bind(group, fits, odd, NULL, 1), COHORT_ERROR_SHAPE, "label");
  ok(cohort_group_batch_size(group, &batch_size));
  assert_int_equal(batch_size, 4);
  outputs_stand(group);
  ok(cohort_metric_create("mae", NULL, NULL, 0, &metric));
  labels[1] = floats(SHAPE(2, 1), FLOATS(0, 0));
  cohort_ndarray_free(labels[0]);
  labels[0] = floats(SHAPE(2, 1), FLOATS(0, 0));
  ok(cohort_group_update_metric_presliced(group, metric, 2, labels, 1));
  cohort_ndarray_free(labels[1]);
  labels[1] = floats(SHAPE(3, 1), FLOATS(0, 0, 0)); /* the first device's would fit */
  fails(cohort_group_update_metric_presliced(group, metric, 2, labels, 1), COHORT_ERROR_SHAPE, "label");
  ok(cohort_metric_value(metric, 0, 0, NULL, &value));
  assert_true(value == (5.5 + 6.5) / 2);
  backward(group, NULL); /* and backward may still follow the earlier forward */
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 1, 10);
  ok(cohort_group_run(group, 0));
  outputs_stand(group);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_descs_free(fits);
  cohort_descs_free(odd);
  cohort_arrays_free(params);
  cohort_ndarray_free(batch);
  cohort_ndarray_free(labels[0]);
  cohort_ndarray_free(labels[1]);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* ERR-08: each call has its own error object: several may exist at once, also while other calls succeed. */
static void errors_do_not_touch_each_other(void **state) {
  cohort_arrays *arrays = named("w", floats(SHAPE(1), FLOATS(1)));
  cohort_error *first, *second;
  size_t at = 0;

  (void)state;
  first = cohort_arrays_find(arrays, "x", &at);
  second = cohort_arrays_load("no/such/file", NULL, &arrays);
  ok(cohort_arrays_find(arrays, "w", &at));
  assert_int_equal(cohort_error_code(first), COHORT_ERROR_NAME);
  assert_string_equal(cohort_error_subject(first), "x");
  assert_int_equal(cohort_error_code(second), COHORT_ERROR_IO);
  assert_string_equal(cohort_error_subject(second), "no/such/file");
  cohort_error_free(first);
  assert_non_null(strstr(cohort_error_message(second), "no/such/file"));
  cohort_error_free(second);
  cohort_arrays_free(arrays);
}

/* ERR-07: work that fails is reported once, with operator and node. Its output and everything computed from it stay
 * invalid for every reader until they are written again; anything independent of it is valid. */
static void failed_arrays_stay_failed_until_they_are_written(void **state) {
  cohort_symbol *parts[2], *symbol = NULL;
  cohort_executor *faulty, *sound;
  cohort_ndarray *output, *other;
  cohort_error *error;
  float values[2];
  int round;

  (void)state;
  parts[0] = node("_plus_scalar", "sound", ATTRS("scalar", "1"), INPUTS(variable("a")));
  parts[1] = node("_mul_scalar", "after", ATTRS("scalar", "2"),
                  INPUTS(node("softmax", "faulty", NO_ATTRS, INPUTS(variable("b")))));
  sound = simple_bind(node("square", "sq", NO_ATTRS, INPUTS(variable("a"))), desc("a", SHAPE(2), NULL), NULL);
  ok(cohort_symbol_group(parts, 2, &symbol));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  {
    cohort_descs *known = desc("a", SHAPE(2), NULL);

    add_desc(known, "b", SHAPE(2), NULL);
    assert_int_equal(setenv("COHORT_FAULT", "faulty", 1), 0);
    faulty = simple_bind(symbol, known, NULL);
  }
  output = output_of(faulty, 1);
  ok(cohort_executor_forward(faulty, 0)); /* queued: the error is not known yet */
  error = cohort_executor_wait(faulty);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_EXECUTION);
  assert_string_equal(cohort_error_subject(error), "softmax 'faulty'");
  cohort_error_free(error);
  ok(cohort_executor_wait(faulty));
  for (round = 0; round < 3; ++round) {
    error = cohort_ndarray_read(output, values, sizeof(values));
    assert_int_equal(cohort_error_code(error), COHORT_ERROR_EXECUTION);
    assert_non_null(strstr(cohort_error_message(error), "softmax 'faulty': "));
    assert_string_equal(cohort_error_subject(error), "softmax 'faulty'");
    cohort_error_free(error);
  }
  set_arg(sound, "a", 3, 4); /* other outputs are not affected */
  ok(cohort_executor_forward(sound, 0));
  holds_free(output_of(sound, 0), 9, 16);
  ok(cohort_ndarray_fill(output, 5));
  holds_free(output, 5, 5);
  other = arg_of(faulty, "b");
  holds_free(other, 0, 0);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  cohort_executor_free(faulty);
  cohort_executor_free(sound);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_call_that_fails_changes_nothing),
      TEST(errors_do_not_touch_each_other),
      TEST(failed_arrays_stay_failed_until_they_are_written),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
