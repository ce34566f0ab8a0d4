/* SPDX-License-Identifier: Apache-2.0 */
/* Running executors (EXE-19 to EXE-26), and their views, texts and destruction (EXE-33 to EXE-39). */
#include <stdio.h>

#include "support/executor_tests.h"

static cohort_symbol *product(void) {
  return node("elemwise_mul", "product", NO_ATTRS, INPUTS(variable("a"), variable("b")));
}

static cohort_executor *bound_product(const char *grad_req) {
  cohort_executor *executor = simple_bind_with(product(), desc("a", SHAPE(2), NULL), grad_req);

  set_arg(executor, "a", 2, 3);
  set_arg(executor, "b", 10, 20);
  return executor;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* EXE-19: inputs by name are first copied in, cast, from any context; an unknown name or another shape is refused
 * before anything is copied. */
static void inputs_by_name_are_copied_in(void **state) {
  const cohort_context cpu6 = {COHORT_DEVICE_CPU, 6};
  cohort_executor *executor = bound_product(NULL);
  cohort_arrays *inputs = NULL;
  cohort_ndarray *integers = NULL;
  const int32_t values[] = {7, -8};

  (void)state;
  ok(cohort_ndarray_from_host(values, sizeof(values), SHAPE(2), COHORT_DTYPE_INT32, &cpu6, &integers));
  inputs = named("a", integers);
  ok(cohort_executor_set_inputs(executor, inputs));
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 70, -160);
  cohort_arrays_free(inputs);
  inputs = named("a", floats(SHAPE(2), FLOATS(1, 1)));
  add_named(inputs, "nobody", floats(SHAPE(2), FLOATS(0, 0)));
  fails(cohort_executor_set_inputs(executor, inputs), COHORT_ERROR_NAME, "'nobody'");
  cohort_arrays_free(inputs);
  inputs = named("a", floats(SHAPE(2), FLOATS(1, 1)));
  add_named(inputs, "b", floats(SHAPE(1, 2), FLOATS(0, 0)));
  fails(cohort_executor_set_inputs(executor, inputs), COHORT_ERROR_SHAPE, "'b': expected (2,), found (1, 2)");
  cohort_arrays_free(inputs);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 70, -160);
  cohort_executor_free(executor);
}

static cohort_executor *bound_norm(const char *grad_req) {
  cohort_symbol *symbol =
      node("BatchNorm", "bn", ATTRS("fix_gamma", "False", "momentum", "0.75", "eps", "0.001"), INPUTS(variable("x")));
  cohort_executor *executor = simple_bind_with(symbol, desc("x", SHAPE(4, 1), NULL), grad_req);

  set_arg(executor, "x", 1, 3, 5, 7); /* mean 4, biased variance 5 */
  set_arg(executor, "bn_gamma", 1);
  set_aux(executor, "bn_moving_mean", 100);
  set_aux(executor, "bn_moving_var", 1);
  return executor;
}

/* With fix_gamma, forward passes count gamma as 1 and do not write the array; backward in training sets it to 1. */
static void a_fixed_gamma_is_not_written_by_inference(void **state) {
  cohort_symbol *symbol = node("BatchNorm", "bn", ATTRS("eps", "0.001"), INPUTS(variable("x")));
  cohort_executor *executor = simple_bind_with(symbol, desc("x", SHAPE(4, 1), NULL), "write");
  int32_t is_train;

  (void)state;
  for (is_train = 0; is_train < 2; ++is_train) {
    set_arg(executor, "x", 1, 3, 5, 7);
    set_arg(executor, "bn_gamma", 3);
    set_aux(executor, "bn_moving_mean", 4);
    set_aux(executor, "bn_moving_var", 5);
    ok(cohort_executor_forward(executor, is_train));
    holds_free(output_of(executor, 0), -1.3415067f, -0.4471689f, 0.4471689f, 1.3415067f);
    holds_free(arg_of(executor, "bn_gamma"), 3);
    ok(try_backward_with(executor, floats(SHAPE(4, 1), FLOATS(1, 0, 0, 0)), is_train));
    holds_free(grad_of(executor, "bn_gamma"), 0);
    holds_free(arg_of(executor, "bn_gamma"), is_train ? 1 : 3);
  }
  cohort_executor_free(executor);
}

/* A fixed gamma without a gradient also becomes 1 if another argument of its layer, or its data, has a gradient. */
static void a_fixed_gamma_that_is_frozen_becomes_one(void **state) {
  static const char *const learners[] = {"x", "bn_beta"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(learners); ++i) {
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
    const char *const req = "write";
    cohort_executor *executor;

    options.grad_req_list = &req;
    options.grad_req_names = &learners[i];
    options.num_grad_reqs = 1;
    executor =
        simple_bind(node("BatchNorm", "bn", NO_ATTRS, INPUTS(variable("x"))), desc("x", SHAPE(4, 1), NULL), &options);
    set_arg(executor, "x", 1, 3, 5, 7);
    set_arg(executor, "bn_gamma", 3);
    ok(cohort_executor_forward(executor, 1));
    ok(try_backward_with(executor, floats(SHAPE(4, 1), FLOATS(1, 0, 0, 0)), 1));
    is_absent(grad_of(executor, "bn_gamma"));
    holds_free(arg_of(executor, "bn_gamma"), 1);
    cohort_executor_free(executor);
  }
}

/* A frozen layer, for which neither its own arguments nor any before it have a gradient, keeps its moving statistics in
 * training. */
static void statistics_of_a_frozen_layer_stay(void **state) {
  cohort_executor *executor = bound_norm("null");

  (void)state;
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), -1.3415067f, -0.4471689f, 0.4471689f, 1.3415067f); /* the output still uses the
                                                                                         * statistics of the batch */
  holds_free(aux_of(executor, "bn_moving_mean"), 100);
  holds_free(aux_of(executor, "bn_moving_var"), 1);
  cohort_executor_free(executor);
}

/* EXE-20: so does the moving mean of a regularizer behind an input without a gradient. */
static void the_mean_of_a_frozen_regularizer_stays(void **state) {
  static const char *const requests[] = {"null", "write"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(requests); ++i) {
    cohort_symbol *symbol = node("IdentityAttachKLSparseReg", "reg", ATTRS("momentum", "0.5"), INPUTS(variable("x")));
    cohort_executor *executor = simple_bind_with(symbol, desc("x", SHAPE(2, 1), NULL), requests[i]);

    set_arg(executor, "x", 0.25f, 0.75f);
    set_aux(executor, "reg_moving_avg", 1);
    ok(cohort_executor_forward(executor, 1));
    holds_free(output_of(executor, 0), 0.25f, 0.75f);
    holds_free(aux_of(executor, "reg_moving_avg"), i ? 0.75f : 1);
    cohort_executor_free(executor);
  }
}

/* EXE-20: a layer behind which BlockGrad or a head such as argmax lets no gradient through updates its statistics all
 * the same. */
static void a_blocked_gradient_behind_a_layer_does_not_freeze_it(void **state) {
  const char *const blocks[] = {"BlockGrad", "round", "shape_array"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(blocks); ++i) {
    cohort_symbol *norm = node("BatchNorm", "bn", ATTRS("momentum", "0.75"), INPUTS(variable("x")));
    cohort_executor *executor =
        simple_bind_with(node(blocks[i], "block", NO_ATTRS, INPUTS(norm)), desc("x", SHAPE(4, 1), NULL), "write");

    set_arg(executor, "x", 1, 3, 5, 7);
    set_aux(executor, "bn_moving_mean", 100);
    set_aux(executor, "bn_moving_var", 1);
    ok(cohort_executor_forward(executor, 1));
    ok(cohort_executor_backward(executor, NULL, 0, 1));
    holds_free(aux_of(executor, "bn_moving_mean"), 76);
    holds_free(aux_of(executor, "bn_moving_var"), 2);
    cohort_executor_free(executor);
  }
}

/* EXE-20: a training step, forward and backward, moves the statistics once, by momentum and biased variance; inference
 * reads them and leaves them. */
static void statistics_move_once_a_training_step(void **state) {
  cohort_executor *executor = bound_norm("write");

  (void)state;
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), -1.3415067f, -0.4471689f, 0.4471689f, 1.3415067f); /* over the root of 5.001 */
  ok(try_backward_with(executor, floats(SHAPE(4, 1), FLOATS(1, 0, 0, 0)), 1));
  holds_free(aux_of(executor, "bn_moving_mean"), 76); /* 0.75 * 100 + 0.25 * 4 */
  holds_free(aux_of(executor, "bn_moving_var"), 2);   /* 0.75 * 1 + 0.25 * 5 */
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), -53.019834f, -51.605957f, -50.192078f, -48.778202f);
  holds_free(aux_of(executor, "bn_moving_mean"), 76);
  holds_free(aux_of(executor, "bn_moving_var"), 2);
  ok(cohort_executor_forward(executor, 1));
  ok(try_backward_with(executor, floats(SHAPE(4, 1), FLOATS(1, 0, 0, 0)), 1));
  holds_free(aux_of(executor, "bn_moving_mean"), 58); /* 0.75 * 76 + 0.25 * 4 */
  cohort_executor_free(executor);
}

static cohort_symbol *dropped(void) { return node("Dropout", "drop", ATTRS("p", "0.5"), INPUTS(variable("x"))); }

/* EXE-20: Dropout masks in training, differently each time, and is the identity in inference. EXE-24: its gradient
 * after an inference pass is the identity too, whatever backward is told; after a training pass it is the mask. */
static void dropout_masks_in_training_only(void **state) {
  enum { NUM = 64 };
  cohort_executor *executor = simple_bind_with(dropped(), desc("x", SHAPE(NUM), NULL), "write");
  float first[NUM], second[NUM], gradient[NUM];
  int32_t is_train, i, num_dropped = 0, num_changed = 0;
  cohort_ndarray *ones = NULL, *array;

  (void)state;
  ok(cohort_ndarray_full(SHAPE(NUM), COHORT_DTYPE_FLOAT32, NULL, 1, &ones));
  fill(arg_of(executor, "x"), 1);
  for (is_train = 0; is_train < 2; ++is_train) {
    ok(cohort_executor_forward(executor, 0));
    ok(cohort_executor_backward(executor, &ones, 1, is_train));
    array = output_of(executor, 0);
    ok(cohort_ndarray_read(array, first, sizeof(first)));
    cohort_ndarray_free(array);
    array = grad_of(executor, "x");
    ok(cohort_ndarray_read(array, gradient, sizeof(gradient)));
    cohort_ndarray_free(array);
    for (i = 0; i < NUM; ++i) assert_true(first[i] == 1 && gradient[i] == 1);
  }
  array = output_of(executor, 0);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_ndarray_read(array, first, sizeof(first)));
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_ndarray_read(array, second, sizeof(second)));
  ok(cohort_executor_backward(executor, &ones, 1, 1));
  cohort_ndarray_free(array);
  array = grad_of(executor, "x");
  ok(cohort_ndarray_read(array, gradient, sizeof(gradient)));
  cohort_ndarray_free(array);
  for (i = 0; i < NUM; ++i) {
    assert_true(second[i] == 0 || second[i] == 2);
    assert_true(gradient[i] == second[i]);
    num_dropped += second[i] == 0;
    num_changed += first[i] != second[i];
  }
  assert_true(num_dropped > 10 && num_dropped < 54);
  assert_true(num_changed > 10);
  cohort_ndarray_free(ones);
  cohort_executor_free(executor);
}

/* ---- step by step ------------------------------------------------------------------------------------------------ */

/* data, fc_weight, fc, act, label, lro: six nodes, of which inference fuses two. */
static cohort_executor *bound_chain(void) {
  cohort_symbol *act = node("Activation", "act", ATTRS("act_type", "relu"), INPUTS(linear("1")));
  cohort_symbol *symbol = node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(act, variable("label")));
  cohort_executor *executor = simple_bind_with(symbol, desc("data", SHAPE(2, 1), NULL), "write");

  set_arg(executor, "data", 1, -1);
  set_arg(executor, "fc_weight", 3);
  set_arg(executor, "label", 0, 0);
  return executor;
}

/* EXE-21: a step is a node of the symbol's JSON, variables included, in training and in inference; a step number beyond
 * the last or below the first runs nothing. */
static void a_step_is_a_node_of_the_symbol(void **state) {
  cohort_executor *executor = bound_chain();
  cohort_symbol *symbol = NULL;
  int32_t is_train, step, left = -1;
  size_t num = 0;

  (void)state;
  ok(cohort_executor_symbol(executor, &symbol));
  ok(cohort_symbol_num_nodes(symbol, &num));
  cohort_symbol_free(symbol);
  assert_int_equal(num, 6);
  for (is_train = 0; is_train < 2; ++is_train) {
    fill(output_of(executor, 0), 0);
    for (step = 0; step < 6; ++step) {
      ok(cohort_executor_partial_forward(executor, is_train, step, &left));
      assert_int_equal(left, 5 - step);
      if (step < 5) holds_free(output_of(executor, 0), 0, 0);
    }
    holds_free(output_of(executor, 0), 3, 0);
  }
  fill(output_of(executor, 0), 9);
  for (step = -1; step < 20; step += 7) { /* -1, 6, 13 */
    left = 77;
    ok(cohort_executor_partial_forward(executor, 0, step, &left));
    assert_int_equal(left, 0);
    holds_free(output_of(executor, 0), 9, 9);
  }
  cohort_executor_free(executor);
}

/* EXE-21: steps may be repeated or left out; they run on the values that are there. EXE-22: after all of them backward
 * may follow, and gives the same as after a whole pass. */
static void steps_may_be_repeated_and_left_out(void **state) {
  cohort_executor *executor = bound_chain();
  int32_t step, left = -1;

  (void)state;
  ok(cohort_executor_forward(executor, 1));
  ok(try_backward_with(executor, NULL, 1));
  holds_free(grad_of(executor, "fc_weight"), 3);
  for (step = 0; step < 6; ++step) ok(cohort_executor_partial_forward(executor, 1, step, &left));
  fill(grad_of(executor, "fc_weight"), 0);
  ok(try_backward_with(executor, NULL, 1));
  holds_free(grad_of(executor, "fc_weight"), 3);
  set_arg(executor, "data", 2, 4);
  ok(cohort_executor_partial_forward(executor, 1, 2, &left)); /* fc only: later results stay */
  holds_free(output_of(executor, 0), 3, 0);
  ok(cohort_executor_partial_forward(executor, 1, 5, &left)); /* act left out: lro reads its old value */
  holds_free(output_of(executor, 0), 3, 0);
  ok(cohort_executor_partial_forward(executor, 1, 3, &left));
  ok(cohort_executor_partial_forward(executor, 1, 5, &left));
  ok(cohort_executor_partial_forward(executor, 1, 5, &left));
  holds_free(output_of(executor, 0), 6, 12);
  cohort_executor_free(executor);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* Heads: product_output, which needs a head gradient, and lro_output, which is a loss. */
static cohort_executor *bound_two_heads(void) {
  cohort_symbol *parts[2], *symbol = NULL;
  cohort_descs *known = desc("a", SHAPE(2), NULL);
  cohort_executor *executor;

  parts[0] = product();
  parts[1] = regression("1");
  ok(cohort_symbol_group(parts, 2, &symbol));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  add_desc(known, "data", SHAPE(1, 1), NULL);
  executor = simple_bind_with(symbol, known, "write");
  set_arg(executor, "a", 2, 3);
  set_arg(executor, "b", 10, 20);
  set_arg(executor, "data", 5);
  set_arg(executor, "fc_weight", 2);
  return executor;
}

/* EXE-23: one head gradient for each output, from any context and of any dtype. A loss that needs none may have NULL or
 * be left off the end of the list; a missing, superfluous or misshapen one is named in the error. */
static void head_gradients_are_taken_and_checked(void **state) {
  const cohort_context cpu3 = {COHORT_DEVICE_CPU, 3};
  const int32_t values[] = {1, 2};
  cohort_executor *executor = bound_two_heads();
  cohort_ndarray *heads[3] = {NULL, NULL, NULL}, *column = floats(SHAPE(2, 1), FLOATS(1, 2));
  cohort_arrays *by_name = NULL;
  size_t at = 0;

  (void)state;
  ok(cohort_ndarray_from_host(values, sizeof(values), SHAPE(2), COHORT_DTYPE_INT32, &cpu3, &heads[0]));
  fails(cohort_executor_backward(executor, heads, 2, 1), COHORT_ERROR_STATE, "forward");
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, heads, 2, 1)); /* NULL for the loss */
  holds_free(grad_of(executor, "a"), 10, 40);
  holds_free(grad_of(executor, "fc_weight"), 50); /* (5 * 2 - 0) * 5 */
  fill(grad_of(executor, "a"), 0);
  ok(cohort_executor_backward(executor, heads, 1, 1)); /* nothing for it */
  holds_free(grad_of(executor, "a"), 10, 40);
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_INVALID_ARGUMENT, "'product_output'");
  fails(cohort_executor_backward(executor, heads + 1, 1, 1), COHORT_ERROR_INVALID_ARGUMENT, "'product_output'");
  fails(cohort_executor_backward(executor, heads, 3, 1), COHORT_ERROR_INVALID_ARGUMENT,
        "for each of 2 outputs, found 3");
  heads[1] = column;
  fails(cohort_executor_backward(executor, heads + 1, 1, 1), COHORT_ERROR_SHAPE,
        "'product_output': expected shape (2,), found (2, 1)");
  ok(cohort_arrays_create(&by_name)); /* as a binding looks up those of a map */
  ok(cohort_arrays_add(by_name, "product_output", heads[0]));
  fails(cohort_arrays_find(by_name, "lro_output", &at), COHORT_ERROR_NAME, "lro_output");
  ok(cohort_executor_backward(executor, heads, 1, 1));
  holds_free(grad_of(executor, "b"), 2, 6);
  cohort_arrays_free(by_name);
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(column);
  cohort_executor_free(executor);
}

/* EXE-25: an output listed twice is two outputs of one value, and both head gradients count. */
static void an_output_listed_twice_sums_its_gradients(void **state) {
  cohort_symbol *parts[2], *symbol = NULL;
  cohort_executor *executor;
  cohort_ndarray *heads[2];

  (void)state;
  parts[0] = parts[1] = product();
  ok(cohort_symbol_group(parts, 2, &symbol));
  cohort_symbol_free(parts[0]);
  executor = simple_bind_with(symbol, desc("a", SHAPE(2), NULL), "write");
  set_arg(executor, "a", 2, 3);
  set_arg(executor, "b", 10, 20);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 20, 60);
  holds_free(output_of(executor, 1), 20, 60);
  heads[0] = floats(SHAPE(2), FLOATS(10, 10));
  heads[1] = floats(SHAPE(2), FLOATS(1, 1));
  ok(cohort_executor_backward(executor, heads, 2, 1));
  holds_free(grad_of(executor, "a"), 110, 220);
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(heads[1]);
  cohort_executor_free(executor);
}

/* ---- views and tools --------------------------------------------------------------------------------------------- */

/* EXE-33, EXE-34: lists of names and live arrays; gradients are NULL where there are none, even if there are none at
 * all; a handle keeps its array alive after the executor is freed. */
static void views_are_live_and_outlive_the_executor(void **state) {
  cohort_executor *executor = bound_product(NULL);
  cohort_ndarray *a = arg_of(executor, "a"), *output = output_of(executor, 0), *array = NULL;
  cohort_arrays *grads = NULL, *outputs = NULL, *args = NULL;
  size_t num = 0, i;

  (void)state;
  ok(cohort_executor_arrays(executor, COHORT_EXECUTOR_GRADS, &grads));
  ok(cohort_arrays_num(grads, &num));
  assert_int_equal(num, 2);
  for (i = 0; i < 2; ++i) {
    ok(cohort_arrays_get(grads, i, &array));
    assert_null(array);
  }
  is_absent(grad_of(executor, "a"));
  ok(cohort_executor_arrays(executor, COHORT_EXECUTOR_OUTPUTS, &outputs));
  ok(cohort_arrays_find(outputs, "product_output", &i));
  ok(cohort_executor_arrays(executor, COHORT_EXECUTOR_ARGS, &args));
  fails(cohort_executor_array_named(executor, COHORT_EXECUTOR_AUX, "a", &array), COHORT_ERROR_NAME, "'a'");
  ok(cohort_ndarray_fill(a, 1));
  ok(cohort_executor_forward(executor, 0));
  cohort_executor_free(executor); /* EXE-39: freeing waits; arrays obtained before live on */
  holds_free(output, 10, 20);
  holds_free(a, 1, 1);
  ok(cohort_arrays_get(args, 1, &array));
  holds_free(array, 10, 20);
  cohort_arrays_free(grads);
  cohort_arrays_free(outputs);
  cohort_arrays_free(args);
}

/* EXE-35: parameters are copied by name into arguments and auxiliary states, cast; unknown names are refused unless
 * allowed, other shapes always, and then nothing is copied. */
static void parameters_are_copied_in_by_name(void **state) {
  cohort_executor *executor = bound_norm(NULL);
  cohort_arrays *args = named("bn_gamma", floats(SHAPE(1), FLOATS(3))), *aux, *unknown, *misshapen;
  cohort_ndarray *doubles = NULL;

  (void)state;
  ok(cohort_ndarray_full(SHAPE(1), COHORT_DTYPE_FLOAT64, NULL, 0.5, &doubles));
  aux = named("bn_moving_var", doubles);
  unknown = named("bn_gamma", floats(SHAPE(1), FLOATS(8)));
  add_named(unknown, "nobody", floats(SHAPE(1), FLOATS(9)));
  misshapen = named("bn_moving_mean", floats(SHAPE(2), FLOATS(8, 8)));
  fails(cohort_executor_copy_params_from(executor, unknown, NULL, 0), COHORT_ERROR_NAME, "'nobody'");
  fails(cohort_executor_copy_params_from(executor, unknown, misshapen, 1), COHORT_ERROR_SHAPE, "'bn_moving_mean'");
  fails(cohort_executor_copy_params_from(executor, args, args, 0), COHORT_ERROR_NAME, "auxiliary states");
  holds_free(arg_of(executor, "bn_gamma"), 1);
  ok(cohort_executor_copy_params_from(executor, args, aux, 0));
  holds_free(arg_of(executor, "bn_gamma"), 3);
  holds_free(aux_of(executor, "bn_moving_var"), 0.5f);
  holds_free(aux_of(executor, "bn_moving_mean"), 100); /* not named: kept */
  ok(cohort_executor_copy_params_from(executor, unknown, NULL, 1));
  holds_free(arg_of(executor, "bn_gamma"), 8);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_arrays_free(unknown);
  cohort_arrays_free(misshapen);
  cohort_executor_free(executor);
}

/* EXE-37: heads, gradients, variables, operators with inputs and sorted attributes, and two last lines as MXNet's. */
static void the_debug_text_shows_the_graph(void **state) {
  cohort_executor *executor =
      simple_bind_with(node("FullyConnected", "fc", ATTRS("num_hidden", "2", "flatten", "0"), INPUTS(variable("data"))),
                       desc("data", SHAPE(1, 3), NULL), "write");
  const char *text = NULL, *last;

  (void)state;
  ok(cohort_executor_debug_text(executor, &text));
  assert_true(strncmp(text, "Symbol Outputs:\n\toutput[0]=fc(0)\n\toutput[1]=", 44) == 0);
  assert_non_null(strstr(text, "output[3]=")); /* three gradients after the head */
  assert_non_null(strstr(text, "\nVariable:data\nVariable:fc_weight\nVariable:fc_bias\n"));
  assert_non_null(strstr(text,
                         "Op:FullyConnected, Name=fc\nInputs:\n\targ[0]=data(0) version=0\n"
                         "\targ[1]=fc_weight(0) version=0\n\targ[2]=fc_bias(0) version=0\n"
                         "Attrs:\n\tflatten=0\n\tnum_hidden=2\n"));
  last = strstr(text, "\nTotal 0 MB allocated\nTotal 11 TempSpace resource requested\n");
  assert_non_null(last);
  assert_string_equal(last, "\nTotal 0 MB allocated\nTotal 11 TempSpace resource requested\n");
  cohort_executor_free(executor);
  executor = simple_bind(linear("2"), desc("data", SHAPE(1, 3), NULL), NULL);
  ok(cohort_executor_debug_text(executor, &text));
  assert_null(strstr(text, "output[1]="));
  cohort_executor_free(executor);
}

/* EXE-37: the number in the line before the last is the planned memory, in whole MiB. */
static void the_debug_text_gives_the_planned_memory(void **state) {
  cohort_symbol *symbol =
      node("softmax", "last", NO_ATTRS, INPUTS(node("transpose", "turned", NO_ATTRS, INPUTS(variable("x")))));
  cohort_executor *executor = simple_bind(symbol, desc("x", SHAPE(1024, 768), NULL), NULL);
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
  const char *text = NULL;
  char line[64];

  (void)state;
  ok(cohort_executor_debug_text(executor, &text));
  ok(cohort_executor_memory(executor, &info));
  assert_true(info.planned_bytes >= 3 << 20); /* the intermediate result of the two steps */
  snprintf(line, sizeof(line), "\nTotal %zu MB allocated\n", info.planned_bytes >> 20);
  assert_non_null(strstr(text, line));
  cohort_executor_free(executor);
}

/* EXE-38: an executor returns the symbol as it was bound, whatever its plan made of it. */
static void the_symbol_of_an_executor_is_the_one_bound(void **state) {
  cohort_symbol *symbol = node("Activation", "act", ATTRS("act_type", "relu"), INPUTS(linear("2"))), *back = NULL;
  cohort_descs *known = desc("data", SHAPE(1, 3), NULL);
  cohort_executor *executor = NULL;
  const char *before = NULL, *after = NULL;

  (void)state;
  ok(cohort_executor_simple_bind(symbol, NULL, known, NULL, &executor));
  ok(cohort_executor_forward(executor, 0));
  ok(cohort_executor_symbol(executor, &back));
  ok(cohort_symbol_to_json(symbol, &before));
  ok(cohort_symbol_to_json(back, &after));
  assert_string_equal(before, after);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
  cohort_symbol_free(back);
  cohort_executor_free(executor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(inputs_by_name_are_copied_in),
      TEST(a_fixed_gamma_is_not_written_by_inference),
      TEST(a_fixed_gamma_that_is_frozen_becomes_one),
      TEST(statistics_of_a_frozen_layer_stay),
      TEST(the_mean_of_a_frozen_regularizer_stays),
      TEST(a_blocked_gradient_behind_a_layer_does_not_freeze_it),
      TEST(statistics_move_once_a_training_step),
      TEST(dropout_masks_in_training_only),
      TEST(a_step_is_a_node_of_the_symbol),
      TEST(steps_may_be_repeated_and_left_out),
      TEST(head_gradients_are_taken_and_checked),
      TEST(an_output_listed_twice_sums_its_gradients),
      TEST(views_are_live_and_outlive_the_executor),
      TEST(parameters_are_copied_in_by_name),
      TEST(the_debug_text_shows_the_graph),
      TEST(the_debug_text_gives_the_planned_memory),
      TEST(the_symbol_of_an_executor_is_the_one_bound),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
