/* SPDX-License-Identifier: Apache-2.0 */
/* A call that is refused or runs out of memory has no effect: repeated, it does what it would have done the first time.
   A forward pass that is repeated to compute a gradient has no visible effect either. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/executor_tests.h"
#include "support/numbers.h"

enum { kMany = 4096 };

/* The numbers of an array, to be freed; frees the array. */
static float *numbers_of(cohort_ndarray *array) {
  size_t count;

  return read_free(array, &count);
}

/* An array whose queued work has failed. */
static cohort_ndarray *bad_array(const int64_t *shape, int32_t num_axes) {
  cohort_executor *executor;
  cohort_ndarray *bad;

  setenv("COHORT_FAULT", "sq", 1);
  executor = simple_bind(node("square", "sq", NO_ATTRS, INPUTS(variable("y"))), desc("y", shape, num_axes, NULL), NULL);
  unsetenv("COHORT_FAULT");
  ok(cohort_executor_forward(executor, 0));
  fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "made to fail");
  bad = output_of(executor, 0);
  cohort_executor_free(executor);
  return bad;
}

static void a_head_gradient_that_was_not_written_is_refused_before_anything_begins(void **state) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_ndarray *bad = bad_array(SHAPE(2)), *good = floats(SHAPE(2), FLOATS(1, 2));
  cohort_executor *executor;

  (void)state;
  options.grad_req = "write";
  for (options.backward_once = 0; options.backward_once < 2; ++options.backward_once) {
    executor = simple_bind(node("exp", "e", NO_ATTRS, INPUTS(variable("x"))), desc("x", SHAPE(2), NULL), &options);
    set_arg(executor, "x", 0, 0);
    ok(cohort_executor_forward(executor, 1));
    fails(cohort_executor_backward(executor, &bad, 1, 1), COHORT_ERROR_EXECUTION, "head gradient of 'e_output'");
    ok(cohort_executor_backward(executor, &good, 1, 1));
    holds_free(grad_of(executor, "x"), 1, 2);
    cohort_executor_free(executor);
  }
  cohort_ndarray_free(bad);
  cohort_ndarray_free(good);
}

static void a_gradient_that_was_not_written_is_not_good_after_a_backward_that_was_refused(void **state) {
  cohort_ndarray *bad = bad_array(SHAPE(2)), *gradient = bad_array(SHAPE(2)), *x = floats(SHAPE(2), FLOATS(0, 0));
  cohort_symbol *symbol = node("exp", "e", NO_ATTRS, INPUTS(variable("x")));
  const int32_t write = COHORT_GRAD_WRITE;
  cohort_executor *executor = NULL;

  (void)state;
  ok(cohort_executor_bind(symbol, NULL, &x, 1, &gradient, &write, NULL, 0, NULL, &executor));
  ok(cohort_executor_forward(executor, 1));
  fails(cohort_executor_backward(executor, &bad, 1, 1), COHORT_ERROR_EXECUTION, "head gradient");
  fails(cohort_ndarray_wait(gradient), COHORT_ERROR_EXECUTION, "not written");
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
  cohort_ndarray_free(x);
  cohort_ndarray_free(gradient);
  cohort_ndarray_free(bad);
}

static void a_group_goes_on_after_a_head_gradient_that_was_not_written(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *bad = bad_array(SHAPE(4, 1));
  cohort_optimizer *sgd = NULL;
  cohort_group *group;

  (void)state;
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &sgd));
  for (options.backward_once = 0; options.backward_once < 2; ++options.backward_once) {
    group = bind_for_training(linear("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options);
    set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
    forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
    fails(cohort_group_backward(group, &bad, 1), COHORT_ERROR_EXECUTION, "head gradient");
    backward(group, floats(SHAPE(4, 1), FLOATS(1, 1, 1, 1)));
    ok(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE));
    ok(cohort_group_wait(group));
    holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 1 - 0.01f * 12, 10 - 0.01f * 16);
    cohort_group_free(group);
  }
  cohort_ndarray_free(bad);
  cohort_optimizer_free(sgd);
}

/* Limits cpu(0) to so many bytes more than it uses; 0: no limit. */
static void leave_bytes(size_t bytes) {
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};
  cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;

  ok(cohort_device_memory(&cpu, &info));
  ok(cohort_device_limit_memory(&cpu, bytes == 0 ? 0 : info.used_bytes + bytes));
}

/* Three steps of Adam; the second is repeated each time that it runs out of memory. */
static float *trained(int32_t mode, size_t bytes, int *num_refused) {
  cohort_group *group =
      bind_for_training(linear("1"), 2, desc("data", SHAPE(4, kMany), NULL), NULL, NAMES("fc_weight"), NULL);
  cohort_optimizer *adam = NULL;
  cohort_error *error;
  float *weights;
  int step;

  set_param(group, "fc_weight", counted(SHAPE(1, kMany), 0.001f));
  ok(cohort_optimizer_create("adam", NULL, NULL, 0, &adam));
  for (step = 0; step < 3; ++step) {
    forward(group, counted(SHAPE(4, kMany), 0.001f), NULL, 1);
    backward(group, floats(SHAPE(4, 1), FLOATS(1, 2, 3, 4)));
    ok(cohort_group_wait(group));
    if (bytes > 0 && step == 0) leave_bytes(bytes);
    error = cohort_group_update(group, adam, mode);
    leave_bytes(0);
    if (error) {
      assert_int_equal(cohort_error_code(error), COHORT_ERROR_OUT_OF_MEMORY);
      cohort_error_free(error);
      ++*num_refused;
      ok(cohort_group_wait(group));
      ok(cohort_group_update(group, adam, mode));
    }
    ok(cohort_group_wait(group));
  }
  weights = numbers_of(device_array(group, COHORT_GROUP_PARAMS, 0, 0));
  cohort_group_free(group);
  cohort_optimizer_free(adam);
  return weights;
}

static void an_update_that_finds_no_memory_is_not_counted(void **state) {
  static const int32_t modes[] = {COHORT_UPDATE_ON_STORE, COHORT_UPDATE_PER_DEVICE};
  const size_t bytes_of_weight = kMany * sizeof(float);
  int num_refused = 0;
  size_t m, halves;

  (void)state;
  only_on_cpus();
  for (m = 0; m < 2; ++m) {
    float *const expected = trained(modes[m], 0, &num_refused);
    for (halves = 1; halves < 14; ++halves) {
      float *const found = trained(modes[m], halves * bytes_of_weight / 2, &num_refused);
      assert_memory_equal(found, expected, bytes_of_weight);
      free(found);
    }
    free(expected);
  }
  assert_true(num_refused > 4);
}

static cohort_ndarray *applied(cohort_tape *tape, const char *op, cohort_ndarray *a, cohort_ndarray *b) {
  cohort_ndarray *inputs[] = {a, b}, *result = NULL;
  cohort_arrays *results = NULL;

  ok(cohort_tape_invoke(tape, op, NULL, NULL, 0, inputs, b ? 2 : 1, NULL, 0, NULL, &results));
  ok(cohort_arrays_get(results, 0, &result));
  cohort_arrays_free(results);
  return result;
}

static void gradients_are_added_once_though_backward_found_no_memory_at_first(void **state) {
  static const cohort_grad_req add[] = {COHORT_GRAD_ADD, COHORT_GRAD_ADD};
  int num_refused = 0;
  size_t arrays, i;

  (void)state;
  only_on_cpus();
  for (arrays = 1; arrays < 12; ++arrays) {
    cohort_ndarray *x[2], *gradients[2], *made[5];
    cohort_tape *tape = NULL;
    cohort_error *error;

    ok(cohort_tape_create(&tape));
    for (i = 0; i < 2; ++i) {
      ok(cohort_ndarray_full(SHAPE(kMany), COHORT_DTYPE_FLOAT32, NULL, 2, &x[i]));
      ok(cohort_ndarray_zeros(SHAPE(kMany), COHORT_DTYPE_FLOAT32, NULL, &gradients[i]));
    }
    ok(cohort_tape_mark(tape, x, gradients, add, 2));
    made[0] = applied(tape, "square", x[0], NULL);
    made[1] = applied(tape, "square", x[1], NULL);
    made[2] = applied(tape, "negative", x[1], NULL);
    made[3] = applied(tape, "elemwise_add", made[0], made[1]);
    made[4] = applied(tape, "elemwise_add", made[3], made[2]);
    ok(cohort_wait_all());
    leave_bytes(arrays * kMany * sizeof(float));
    error = cohort_tape_backward(tape, &made[4], NULL, 1, NULL);
    leave_bytes(0);
    if (error) {
      assert_int_equal(cohort_error_code(error), COHORT_ERROR_OUT_OF_MEMORY);
      cohort_error_free(error);
      ++num_refused;
      ok(cohort_tape_backward(tape, &made[4], NULL, 1, NULL));
    }
    for (i = 0; i < 2; ++i) {
      float *const values = numbers_of(gradients[i]);
      assert_float_equal(values[0], i == 0 ? 4 : 3, 0);
      free(values);
      cohort_ndarray_free(x[i]);
    }
    for (i = 0; i < 5; ++i) cohort_ndarray_free(made[i]);
    cohort_tape_free(tape);
  }
  assert_true(num_refused > 2);
}

static cohort_arrays *good_and_bad(const char *good, const char *bad) {
  cohort_arrays *arrays = named(good, floats(SHAPE(1, 2), FLOATS(5, 6)));

  add_named(arrays, bad, bad_array(SHAPE(1, 2)));
  return arrays;
}

/* PRM-01: everything is checked first. */
static void nothing_is_copied_where_one_array_was_not_written(void **state) {
  cohort_arrays *arrays = good_and_bad("a", "b");
  cohort_descs *descs = desc("a", SHAPE(1, 2), NULL);
  cohort_executor *executor;
  cohort_group *group;

  (void)state;
  add_desc(descs, "b", SHAPE(1, 2), NULL);
  executor = simple_bind(node("elemwise_add", "s", NO_ATTRS, INPUTS(variable("a"), variable("b"))), descs, NULL);
  set_arg(executor, "a", 1, 1);
  fails(cohort_executor_copy_params_from(executor, arrays, NULL, 0), COHORT_ERROR_EXECUTION, "'b'");
  holds_free(arg_of(executor, "a"), 1, 1);
  fails(cohort_executor_set_inputs(executor, arrays), COHORT_ERROR_EXECUTION, "'b'");
  holds_free(arg_of(executor, "a"), 1, 1);
  cohort_executor_free(executor);
  cohort_arrays_free(arrays);

  arrays = good_and_bad("data", "fc_weight");
  group = bind_for_training(linear("1"), 2, desc("data", SHAPE(2, 2), NULL), NULL, NAMES("fc_weight"), NULL);
  fill(device_array(group, COHORT_GROUP_DATA, 0, 0), 3);
  fails(cohort_group_set_params(group, arrays, NULL, 0), COHORT_ERROR_EXECUTION, "'fc_weight'");
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 3, 3);
  cohort_group_free(group);
  cohort_arrays_free(arrays);
}

/* ---- backward of inference repeats the forward pass, because inference keeps nothing for it (BWD-07)
 * -------------- */

/* The gradient of x * random is the number it was multiplied with, and the output stays the same. */
static void backward_after_inference_is_that_of_the_numbers_that_were_drawn(void **state) {
  cohort_symbol *noise = node("_random_uniform", "u", ATTRS("shape", "(64,)", "low", "1", "high", "2"), INPUTS(NULL));
  cohort_symbol *products[2];
  int which, pass;

  (void)state;
  products[0] = node("elemwise_mul", "m", NO_ATTRS, INPUTS(variable("x"), noise));
  products[1] = node("Dropout", "d", ATTRS("mode", "always"), INPUTS(variable("x")));
  for (which = 0; which < 2; ++which) {
    cohort_executor *executor = simple_bind_with(products[which], desc("x", SHAPE(64), NULL), "write");
    cohort_ndarray *ones = NULL;
    float *before = NULL;

    ok(cohort_ndarray_full(SHAPE(64), COHORT_DTYPE_FLOAT32, NULL, 1, &ones));
    fill(arg_of(executor, "x"), 1);
    for (pass = 0; pass < 3; ++pass) {
      float *output, *again, *gradient;

      ok(cohort_executor_forward(executor, pass == 2));
      output = numbers_of(output_of(executor, 0));
      ok(cohort_executor_backward(executor, &ones, 1, 1));
      gradient = numbers_of(grad_of(executor, "x"));
      again = numbers_of(output_of(executor, 0));
      assert_memory_equal(gradient, output, 64 * sizeof(float));
      assert_memory_equal(again, output, 64 * sizeof(float));
      if (before) assert_memory_not_equal(output, before, 64 * sizeof(float));
      free(before);
      free(gradient);
      free(again);
      before = output;
    }
    free(before);
    cohort_ndarray_free(ones);
    cohort_executor_free(executor);
  }
}

/* In a group, whose devices draw different numbers. */
static void backward_of_a_group_after_inference_is_that_of_the_numbers_that_were_drawn(void **state) {
  cohort_symbol *dropped = node("Dropout", "d", ATTRS("mode", "always"), INPUTS(variable("data")));
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *ones[2];
  cohort_group *group;
  float *output, *gradient;
  int i;

  (void)state;
  options.inputs_need_grad = 1;
  group = bind_for_training(dropped, 2, desc("data", SHAPE(64, 2), NULL), NULL, NAMES(NULL), &options);
  for (i = 0; i < 2; ++i) ok(cohort_ndarray_full(SHAPE(64, 2), COHORT_DTYPE_FLOAT32, NULL, 1, &ones[i]));
  forward(group, ones[0], NULL, 0);
  output = numbers_of(merged(group, COHORT_GROUP_OUTPUTS, 0));
  backward(group, ones[1]);
  gradient = numbers_of(merged(group, COHORT_GROUP_INPUT_GRADS, 0));
  assert_memory_equal(gradient, output, 128 * sizeof(float));
  free(output);
  free(gradient);
  cohort_group_free(group);
}

static void what_a_forward_pass_changes_is_changed_once(void **state) {
  cohort_symbol *update = node("sgd_mom_update", "u", ATTRS("lr", "1", "momentum", "0.5"),
                               INPUTS(variable("w"), variable("g"), variable("mom")));
  cohort_symbol *both[2] = {node("BlockGrad", "b", NO_ATTRS, INPUTS(update)),
                            node("exp", "e", NO_ATTRS, INPUTS(variable("x")))};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  static const char *const write[] = {"write"}, *const of_x[] = {"x"};
  cohort_ndarray *heads[2] = {NULL, floats(SHAPE(2), FLOATS(1, 1))};
  cohort_symbol *symbol = NULL;
  int forward_trains, backward_trains;

  (void)state;
  ok(cohort_symbol_group(both, 2, &symbol));
  options.grad_req_list = write;
  options.grad_req_names = of_x;
  options.num_grad_reqs = 1;
  for (forward_trains = 0; forward_trains < 2; ++forward_trains) {
    for (backward_trains = 0; backward_trains < 2; ++backward_trains) {
      cohort_descs *descs = desc("x", SHAPE(2), NULL);
      cohort_executor *executor = NULL;

      add_desc(descs, "w", SHAPE(2), NULL);
      add_desc(descs, "g", SHAPE(2), NULL);
      add_desc(descs, "mom", SHAPE(2), NULL);
      ok(cohort_executor_simple_bind(symbol, NULL, descs, &options, &executor));
      fill(arg_of(executor, "g"), 1);
      ok(cohort_executor_forward(executor, forward_trains));
      holds_free(arg_of(executor, "mom"), -1, -1);
      ok(cohort_executor_backward(executor, heads, 2, backward_trains));
      holds_free(arg_of(executor, "mom"), -1, -1);
      holds_free(grad_of(executor, "x"), 1, 1);
      cohort_descs_free(descs);
      cohort_executor_free(executor);
    }
  }
  cohort_ndarray_free(heads[1]);
  cohort_symbol_free(both[0]);
  cohort_symbol_free(both[1]);
  cohort_symbol_free(symbol);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_head_gradient_that_was_not_written_is_refused_before_anything_begins),
      cmocka_unit_test(a_gradient_that_was_not_written_is_not_good_after_a_backward_that_was_refused),
      cmocka_unit_test(a_group_goes_on_after_a_head_gradient_that_was_not_written),
      cmocka_unit_test(an_update_that_finds_no_memory_is_not_counted),
      cmocka_unit_test(gradients_are_added_once_though_backward_found_no_memory_at_first),
      cmocka_unit_test(nothing_is_copied_where_one_array_was_not_written),
      cmocka_unit_test(backward_after_inference_is_that_of_the_numbers_that_were_drawn),
      cmocka_unit_test(backward_of_a_group_after_inference_is_that_of_the_numbers_that_were_drawn),
      cmocka_unit_test(what_a_forward_pass_changes_is_changed_once),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
