/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs inside nodes that write arrays they are given: auxiliary states, weights that are updated, a gamma that is
 * fixed. Other users of these arrays see the writes like those of any node, so that a pass that fails makes them
 * invalid. */
#include "support/scale_op.h"

/* One input per row, the others the same in each iteration. */
static cohort_symbol *loop_of(const char *remain, cohort_symbol *const *body_and_inputs) {
  return node("_foreach", "loop",
              ATTRS("num_outputs", "1", "num_out_data", "1", "in_data_locs", "(0,)", "in_state_locs", "()",
                    "remain_locs", remain),
              body_and_inputs);
}

static cohort_symbol *norm(const char *fix_gamma) {
  return node("BatchNorm", "bn", ATTRS("momentum", "0.5", "fix_gamma", fix_gamma), INPUTS(variable("row")));
}

/* Rows of (2, 2, 1) through a norm; with the node "faulty" behind it. */
static cohort_symbol *norm_loop(const char *fix_gamma, cohort_symbol *data) {
  return node("softmax", "faulty", NO_ATTRS,
              INPUTS(loop_of("(1, 2, 3, 4)", INPUTS(norm(fix_gamma), data, variable("gamma"), variable("beta"),
                                                    variable("mean"), variable("var")))));
}

/* The same, each row through an inner loop. */
static cohort_symbol *nested_norm_loop(void) {
  cohort_symbol *inner = loop_of("(1, 2, 3, 4)", INPUTS(norm("False"), variable("rows"), variable("g"), variable("b"),
                                                        variable("m"), variable("v")));
  return node("softmax", "faulty", NO_ATTRS,
              INPUTS(loop_of("(1, 2, 3, 4)", INPUTS(inner, variable("data"), variable("gamma"), variable("beta"),
                                                    variable("mean"), variable("var")))));
}

/* w -= row in each iteration, as the momentum of an update. */
static cohort_symbol *update_by(cohort_symbol *row, cohort_symbol *w) {
  cohort_symbol *same = NULL;

  ok(cohort_symbol_output(row, 0, &same));
  return node("sgd_mom_update", "update", ATTRS("lr", "1", "momentum", "1"), INPUTS(row, same, w));
}
static cohort_symbol *update(void) { return update_by(variable("row"), variable("w")); }
static cohort_symbol *update_loop(cohort_symbol *weight) {
  return loop_of("(1,)", INPUTS(update(), variable("data"), weight));
}

static cohort_executor *bind_faulty(cohort_symbol *symbol, cohort_descs *known, const char *grad_req) {
  cohort_executor *executor;

  assert_int_equal(setenv("COHORT_FAULT", "faulty", 1), 0);
  executor = simple_bind_with(symbol, known, grad_req);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  return executor;
}

static void is_bad(cohort_executor *executor, const char *name, int bad) {
  cohort_ndarray *array = arg_of(executor, name);
  float values[8];
  int64_t size = 0;
  size_t bytes;

  ok(cohort_ndarray_size(array, &size));
  bytes = (size_t)size * sizeof(float);
  if (bad) {
    fails(cohort_ndarray_read(array, values, bytes), COHORT_ERROR_EXECUTION, "'faulty'");
  } else {
    ok(cohort_ndarray_read(array, values, bytes));
  }
  cohort_ndarray_free(array);
}

static void statistics_are_bad_after_training_failed(void **state) {
  int nested;

  (void)state;
  for (nested = 0; nested < 2; ++nested) {
    cohort_executor *executor =
        nested ? bind_faulty(nested_norm_loop(), desc("data", SHAPE(2, 2, 2, 1), NULL), "write")
               : bind_faulty(norm_loop("False", variable("data")), desc("data", SHAPE(2, 2, 1), NULL), "write");

    /* Inference writes none of them. */
    ok(cohort_executor_forward(executor, 0));
    fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "'faulty'");
    is_bad(executor, "mean", 0);
    is_bad(executor, "var", 0);
    ok(cohort_executor_forward(executor, 1));
    fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "'faulty'");
    is_bad(executor, "mean", 1);
    is_bad(executor, "var", 1);
    is_bad(executor, "beta", 0);
    cohort_executor_free(executor);
  }
}

static void a_weight_that_is_updated_inside_is_bad_after_a_failure(void **state) {
  cohort_executor *executor = bind_faulty(node("softmax", "faulty", NO_ATTRS, INPUTS(update_loop(variable("w")))),
                                          desc("data", SHAPE(3, 2), NULL), NULL);

  (void)state;
  ok(cohort_executor_forward(executor, 0)); /* in inference, too */
  fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "'faulty'");
  is_bad(executor, "w", 1);
  is_bad(executor, "data", 0);
  cohort_executor_free(executor);
}

/* In another shape, outside of any loop. */
static void a_reshaped_weight_that_is_updated_is_bad_after_a_failure(void **state) {
  cohort_symbol *flat = node("Reshape", NULL, ATTRS("shape", "(4,)"), INPUTS(variable("w")));
  cohort_symbol *symbol = node("softmax", "faulty", NO_ATTRS, INPUTS(update_by(variable("g"), flat)));
  cohort_executor *executor = bind_faulty(symbol, desc("w", SHAPE(2, 2), NULL), NULL);

  (void)state;
  ok(cohort_executor_forward(executor, 0));
  fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "'faulty'");
  is_bad(executor, "w", 1);
  cohort_executor_free(executor);
}

/* Backward sets it to 1 if it is trained. */
static void a_gamma_that_is_fixed_inside_is_bad_after_backward_failed(void **state) {
  host self;
  cohort_ndarray *head = floats(SHAPE(2, 2, 1), FLOATS(1, 2, 3, 4));
  cohort_executor *executor;

  (void)state;
  begin(&self, 0);
  self.fail_backward = 1;
  executor = simple_bind_with(norm_loop("True", scale_node("3", variable("data"))), desc("data", SHAPE(2, 2, 1), NULL),
                              "write");
  set_arg(executor, "gamma", 7);
  ok(cohort_executor_forward(executor, 1));
  is_bad(executor, "gamma", 0);
  fails(cohort_executor_backward(executor, &head, 1, 1), COHORT_ERROR_EXECUTION, "scale");
  {
    cohort_ndarray *gamma = arg_of(executor, "gamma");
    float value;

    fails(cohort_ndarray_read(gamma, &value, sizeof value), COHORT_ERROR_EXECUTION, "scale");
    cohort_ndarray_free(gamma);
  }
  is_bad(executor, "beta", 0);
  cohort_ndarray_free(head);
  cohort_executor_free(executor);
  end(&self);
}

/* A computed gamma is not kept anywhere, so it is not set to 1: its other readers see the computed value. */
static void a_gamma_that_is_computed_is_not_overwritten(void **state) {
  cohort_symbol *gamma = node("exp", NULL, NO_ATTRS, INPUTS(variable("log_gamma"))), *same = NULL, *out;
  cohort_executor *executor;

  (void)state;
  ok(cohort_symbol_output(gamma, 0, &same));
  out = node("BatchNorm", "bn", ATTRS("fix_gamma", "True"), INPUTS(variable("data"), gamma));
  out = node("broadcast_mul", NULL, NO_ATTRS, INPUTS(out, same));
  executor = simple_bind_with(out, desc("data", SHAPE(2, 1), NULL), "write");
  set_arg(executor, "data", 1, -1);
  set_arg(executor, "log_gamma", 2);
  ok(cohort_executor_forward(executor, 1));
  {
    cohort_ndarray *head = floats(SHAPE(2, 1), FLOATS(1, 0));

    ok(cohort_executor_backward(executor, &head, 1, 1));
    cohort_ndarray_free(head);
  }
  {
    cohort_ndarray *grad = grad_of(executor, "log_gamma");
    float value;

    ok(cohort_ndarray_read(grad, &value, sizeof value));
    assert_float_equal(value, 7.389, 1e-2); /* exp(2) * normalised data, which is 1 */
    cohort_ndarray_free(grad);
  }
  cohort_executor_free(executor);
}

/* A weight that a body updates is no constant of the loop: an iteration reads what the one before has written, in any
 * layout. */
static void a_pass_reads_what_the_pass_before_has_updated(void **state) {
  cohort_symbol *w = variable("w"), *same = NULL, *parts[2], *body = NULL;
  cohort_executor *executor;
  cohort_ndarray *array;
  static float values[2 * 8 * 64];

  (void)state;
  ok(cohort_symbol_output(w, 0, &same));
  parts[0] = node("FullyConnected", "fc", ATTRS("num_hidden", "64", "no_bias", "True"), INPUTS(variable("row"), w));
  parts[1] = update_by(variable("g"), same);
  ok(cohort_symbol_group(parts, 2, &body));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  executor = simple_bind_with(node("_foreach", "loop",
                                   ATTRS("num_outputs", "2", "num_out_data", "2", "in_data_locs", "(0,)",
                                         "in_state_locs", "()", "remain_locs", "(1, 2)"),
                                   INPUTS(body, variable("data"), variable("w"), variable("g"))),
                              desc("data", SHAPE(2, 8, 64), NULL), NULL);
  array = arg_of(executor, "data");
  ok(cohort_ndarray_fill(array, 1));
  cohort_ndarray_free(array);
  array = arg_of(executor, "g");
  ok(cohort_ndarray_fill(array, 1));
  cohort_ndarray_free(array);
  ok(cohort_executor_forward(executor, 0));
  array = output_of(executor, 0);
  ok(cohort_ndarray_read(array, values, sizeof values));
  cohort_ndarray_free(array);
  assert_float_equal(values[0], 0, 0);
  assert_float_equal(values[8 * 64], -64, 0);
  cohort_executor_free(executor);
}

/* A state is a value of the loop: its initial array is not changed, although an iteration changes the state in
 * place. */
static void a_state_that_is_updated_in_place_is_the_loops_own(void **state) {
  cohort_symbol *parts[2], *same = NULL, *body = NULL;
  cohort_executor *executor;

  (void)state;
  parts[0] = update(); /* row + (w - row) */
  ok(cohort_symbol_output(parts[0], 0, &same));
  parts[1] = node("elemwise_sub", NULL, NO_ATTRS, INPUTS(same, variable("one")));
  ok(cohort_symbol_group(parts, 2, &body));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  executor = simple_bind_with(node("_foreach", "loop",
                                   ATTRS("num_outputs", "2", "num_out_data", "1", "in_data_locs", "(0,)",
                                         "in_state_locs", "(1,)", "remain_locs", "(2,)"),
                                   INPUTS(body, variable("data"), variable("start"), variable("one"))),
                              desc("data", SHAPE(2, 2), NULL), NULL);
  set_arg(executor, "data", 1, 2, 3, 4);
  set_arg(executor, "start", 10, 20);
  set_arg(executor, "one", 1, 1);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 10, 20, 9, 19);
  holds_free(arg_of(executor, "start"), 10, 20);
  cohort_executor_free(executor);
}

/* The updated weight has to be an array that is bound. */
static void weights_updated_in_a_body_must_be_variables(void **state) {
  cohort_symbol *symbol = NULL, *inputs[3];
  const char *keys[] = {"num_outputs", "num_out_data", "in_data_locs", "in_state_locs", "remain_locs"};
  const char *values[] = {"1", "1", "(0,)", "()", "(1,)"};
  size_t i;

  (void)state;
  inputs[0] = update();
  inputs[1] = variable("data");
  inputs[2] = node("exp", "e", NO_ATTRS, INPUTS(variable("w")));
  fails(cohort_symbol_create("_foreach", "loop", keys, values, 5, inputs, NULL, 3, &symbol),
        COHORT_ERROR_INVALID_ARGUMENT,
        "input that a sub-graph writes, 'data1' of node 'loop' (_foreach): expected a variable, found the output of "
        "node 'e' (exp)");
  for (i = 0; i < 3; ++i) cohort_symbol_free(inputs[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(statistics_are_bad_after_training_failed),
      TEST(a_weight_that_is_updated_inside_is_bad_after_a_failure),
      TEST(a_reshaped_weight_that_is_updated_is_bad_after_a_failure),
      TEST(a_gamma_that_is_fixed_inside_is_bad_after_backward_failed),
      TEST(a_gamma_that_is_computed_is_not_overwritten),
      TEST(a_pass_reads_what_the_pass_before_has_updated),
      TEST(a_state_that_is_updated_in_place_is_the_loops_own),
      TEST(weights_updated_in_a_body_must_be_variables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
