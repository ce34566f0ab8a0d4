/* SPDX-License-Identifier: Apache-2.0 */
/* The state after a failed pass: no old result looks valid, and everything can be used again. */
#include "support/executor_tests.h"

/* A monitor filter that chooses no array, and fails at its fails_at-th call. */
typedef struct failing_once {
  int calls, fails_at;
} failing_once;

static int32_t fail_once(const char *name, void *user_data) {
  failing_once *const when = user_data;

  (void)name;
  return ++when->calls == when->fails_at ? -1 : 0;
}

static cohort_monitor *monitor_that_fails(failing_once *when) {
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor = NULL;

  options.filter = fail_once;
  options.filter_user_data = when;
  ok(cohort_monitor_create(1, &options, &monitor));
  return monitor;
}

static cohort_symbol *exponential(void) {
  return node("MakeLoss", "loss", NO_ATTRS, INPUTS(node("exp", "e", NO_ATTRS, INPUTS(variable("x")))));
}

static cohort_executor *bound_exponential(cohort_bool backward_once, const char *grad_req) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.grad_req = grad_req;
  options.backward_once = backward_once;
  return simple_bind(exponential(), desc("x", SHAPE(2), NULL), &options);
}

static void a_monitored_pass_that_the_host_ends_leaves_nothing_that_looks_good(void **state) {
  cohort_executor *executor = bound_exponential(0, "write");
  cohort_ndarray *output, *gradient;
  failing_once when = {0, 0};
  cohort_monitor *monitor = monitor_that_fails(&when);

  (void)state;
  set_arg(executor, "x", 0, 0);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  gradient = grad_of(executor, "x");
  holds(gradient, 1, 1);
  set_arg(executor, "x", 1, 2);
  ok(cohort_monitor_install_on_executor(monitor, executor));
  ok(cohort_monitor_tic(monitor));
  when.fails_at = when.calls + 1;
  fails(cohort_executor_forward(executor, 1), COHORT_ERROR_EXECUTION, "callback returned");
  output = output_of(executor, 0);
  fails(cohort_ndarray_wait(output), COHORT_ERROR_EXECUTION, "not written");
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_STATE, "the last one failed");
  ok(cohort_executor_forward(executor, 1));
  when.fails_at = when.calls + 1;
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_EXECUTION, "callback returned");
  fails(cohort_ndarray_wait(gradient), COHORT_ERROR_EXECUTION, "not written");
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  holds(gradient, 2.7182818f, 7.389056f);
  cohort_ndarray_free(output);
  cohort_ndarray_free(gradient);
  cohort_executor_free(executor);
  cohort_monitor_free(monitor);
}

/* Squares y = (3, 3); every pass of it fails, so that its output is invalid until it is written in another way. */
static cohort_executor *failing_square(void) {
  cohort_executor *executor;

  assert_int_equal(setenv("COHORT_FAULT", "sq", 1), 0);
  executor = simple_bind(node("square", "sq", NO_ATTRS, INPUTS(variable("y"))), desc("y", SHAPE(2), NULL), NULL);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  return executor;
}

static void spoil(cohort_executor *failing) {
  ok(cohort_executor_forward(failing, 0));
  fails(cohort_executor_wait(failing), COHORT_ERROR_EXECUTION, "'sq'");
}

static cohort_executor *bound_to(cohort_ndarray *x, cohort_ndarray *gradient, int32_t grad_req,
                                 cohort_bool backward_once) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *symbol = exponential();
  cohort_executor *executor = NULL;

  options.backward_once = backward_once;
  ok(cohort_executor_bind(symbol, NULL, &x, 1, &gradient, &grad_req, NULL, 0, &options, &executor));
  cohort_symbol_free(symbol);
  return executor;
}

/* After inference backward runs forward again; if the filter refuses that, the forward does not count as run. */
static void a_backward_that_was_refused_runs_on_what_is_there_then(void **state) {
  cohort_executor *failing = failing_square(), *executor;
  cohort_ndarray *x = output_of(failing, 0), *gradient = floats(SHAPE(2), FLOATS(0, 0));

  (void)state;
  fill(output_of(failing, 0), 0);
  executor = bound_to(x, gradient, COHORT_GRAD_WRITE, 0);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  holds(gradient, 1, 1);
  fill(output_of(failing, 0), 2);
  ok(cohort_executor_forward(executor, 0));
  ok(cohort_executor_wait(executor));
  spoil(failing);
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_EXECUTION, "not written");
  fill(output_of(failing, 0), 1);
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  holds(gradient, 2.7182818f, 2.7182818f);
  cohort_executor_free(executor);
  cohort_executor_free(failing);
  cohort_ndarray_free(x);
  cohort_ndarray_free(gradient);
}

static void a_backward_that_never_began_has_not_run(void **state) {
  cohort_executor *failing = failing_square(), *executor;
  cohort_ndarray *x = floats(SHAPE(2), FLOATS(0, 1)), *gradient = output_of(failing, 0);

  (void)state;
  fill(output_of(failing, 0), 0);
  executor = bound_to(x, gradient, COHORT_GRAD_ADD, 1);
  ok(cohort_executor_forward(executor, 1));
  spoil(failing);
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_EXECUTION, "not written");
  fill(output_of(failing, 0), 5);
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  holds(gradient, 6, 7.7182818f);
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_STATE, "backward_once");
  cohort_executor_free(executor);
  cohort_executor_free(failing);
  cohort_ndarray_free(x);
  cohort_ndarray_free(gradient);
}

/* Steps use other memory than a whole pass: the first step after one computes everything before it. */
static void a_step_after_a_whole_pass_finds_what_is_before_it(void **state) {
  cohort_bool once;

  (void)state;
  for (once = 0; once < 2; ++once) {
    cohort_executor *executor = bound_exponential(once, "write");
    int32_t left = -1;

    set_arg(executor, "x", 0, 1);
    ok(cohort_executor_forward(executor, 1));
    ok(cohort_executor_backward(executor, NULL, 0, 1));
    set_arg(executor, "x", 1, 2);
    ok(cohort_executor_partial_forward(executor, 1, 2, &left));
    assert_int_equal(left, 0);
    holds_free(output_of(executor, 0), 2.7182818f, 7.389056f);
    ok(cohort_executor_backward(executor, NULL, 0, 1));
    holds_free(grad_of(executor, "x"), 2.7182818f, 7.389056f);
    if (once) { /* backward has reused the memory of the steps' results */
      ok(cohort_executor_partial_forward(executor, 1, 2, &left));
      holds_free(output_of(executor, 0), 2.7182818f, 7.389056f);
      ok(cohort_executor_backward(executor, NULL, 0, 1));
      holds_free(grad_of(executor, "x"), 2.7182818f, 7.389056f);
    }
    cohort_executor_free(executor);
  }
}

static void a_group_told_of_a_failed_forward_takes_no_step(void **state) {
  cohort_optimizer *sgd = NULL;
  cohort_group *group;

  (void)state;
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &sgd));
  assert_int_equal(setenv("COHORT_FAULT", "lro", 1), 0);
  group = bind_regression(2, 4, NULL);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  fails(cohort_group_wait(group), COHORT_ERROR_EXECUTION, "'lro'");
  fails(try_backward(group, NULL), COHORT_ERROR_STATE, "the last one failed");
  fails(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE), COHORT_ERROR_STATE, "no backward");
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 1, 10);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
}

/* Each device of a group completes its work, even if a filter fails on another one. */
static void the_other_devices_go_backward_whatever_one_does(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  failing_once when = {0, 0};
  cohort_monitor *monitor = monitor_that_fails(&when);
  float first[2], again[2];
  cohort_ndarray *gradient = device_array(group, COHORT_GROUP_GRADS, 0, 1);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  backward(group, NULL);
  ok(cohort_ndarray_read(gradient, first, sizeof first));
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  forward(group, counted(SHAPE(4, 2), 2), counted(SHAPE(4, 1), 0), 1);
  when.fails_at = when.calls + 1;
  fails(try_backward(group, NULL), COHORT_ERROR_EXECUTION, "callback returned");
  assert_true(when.calls > when.fails_at);
  ok(cohort_ndarray_read(gradient, again, sizeof again));
  assert_true(again[0] != first[0]);
  cohort_ndarray_free(gradient);
  gradient = device_array(group, COHORT_GROUP_GRADS, 0, 0);
  fails(cohort_ndarray_wait(gradient), COHORT_ERROR_EXECUTION, "not written");
  backward(group, NULL);
  ok(cohort_ndarray_wait(gradient));
  cohort_ndarray_free(gradient);
  cohort_group_free(group);
  cohort_monitor_free(monitor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_monitored_pass_that_the_host_ends_leaves_nothing_that_looks_good),
      TEST(a_backward_that_was_refused_runs_on_what_is_there_then),
      TEST(a_backward_that_never_began_has_not_run),
      TEST(a_step_after_a_whole_pass_finds_what_is_before_it),
      TEST(a_group_told_of_a_failed_forward_takes_no_step),
      TEST(the_other_devices_go_backward_whatever_one_does),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
