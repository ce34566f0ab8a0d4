/* SPDX-License-Identifier: Apache-2.0 */
/* Custom operators in executors and JSON: names, inference, the arrays they are given, and what happens when they
 * fail. */
#include "support/scale_op.h"

/* ---- executors ----------------------------------------------------------------------------------------------------
 */

static void an_executor_calls_it(void **state) {
  int mode;

  (void)state;
  for (mode = 0; mode < 3; ++mode) { /* on the calling thread, on any, with an operator applied in the callback */
    host self;
    cohort_executor *executor;

    begin(&self, mode == 1);
    self.with_operator = mode == 2;
    executor = simple_bind_with(network(), desc("data", SHAPE(3), NULL), "write");
    assert_int_equal(self.num_declared, 1);
    assert_int_equal(self.context.device_type, COHORT_DEVICE_CPU);
    set_arg(executor, "data", 1, 2, -3);
    ok(cohort_executor_forward(executor, 1));
    holds_free(output_of(executor, 0), 3, 12, 27);
    assert_int_equal(self.num_forward, 1);
    holds_free(aux_of(executor, "scale_calls"), 1);
    ok(try_backward_with(executor, floats(SHAPE(3), FLOATS(1, 1, 10)), 1));
    holds_free(grad_of(executor, "data"), 6, 12, -180);
    ok(cohort_executor_forward(executor, 1));
    ok(cohort_executor_wait(executor));
    holds_free(aux_of(executor, "scale_calls"), 2);
    ok(cohort_executor_forward(executor, 0)); /* inference is bound separately */
    ok(cohort_executor_wait(executor));
    holds_free(aux_of(executor, "scale_calls"), 2);
    assert_int_equal(self.num_created, 2);
    if (mode != 1) assert_int_equal(self.on_other_threads, 0);
    cohort_executor_free(executor);
    end(&self);
  }
}

static void what_it_is_named_and_how_it_infers(void **state) {
  host self;
  cohort_symbol *symbol;
  cohort_descs *known, *args = NULL, *outputs = NULL, *aux = NULL;
  const char *name = NULL;
  size_t num = 0;
  int32_t complete = 0, num_axes = 0, dtype = 0;
  int64_t shape[COHORT_MAX_AXES];
  cohort_executor *executor = NULL;

  (void)state;
  begin(&self, 0);
  symbol = network();
  ok(cohort_symbol_num_names(symbol, COHORT_SYMBOL_AUX, &num));
  assert_int_equal(num, 1);
  ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_AUX, 0, &name));
  assert_string_equal(name, "scale_calls");
  ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_OUTPUTS, 0, &name));
  assert_string_equal(name, "scale_scaled");
  known = no_descs();
  add_typed(known, "data", SHAPE(4, 5), COHORT_DTYPE_FLOAT64);
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, &args, &outputs, &aux));
  assert_int_equal(complete, 1);
  ok(cohort_descs_get(outputs, 0, NULL, shape, COUNT(shape), &num_axes, NULL, NULL));
  assert_int_equal(num_axes, 2);
  assert_int_equal(shape[1], 5);
  cohort_descs_free(args);
  cohort_descs_free(outputs);
  cohort_descs_free(aux);
  ok(cohort_symbol_infer_dtype(symbol, known, 0, &complete, &args, &outputs, &aux));
  assert_int_equal(complete, 1);
  ok(cohort_descs_get(aux, 0, NULL, shape, COUNT(shape), NULL, &dtype, NULL));
  assert_int_equal(dtype, COHORT_DTYPE_FLOAT64);
  cohort_descs_free(args);
  cohort_descs_free(outputs);
  cohort_descs_free(aux);
  cohort_descs_free(known);
  known = no_descs(); /* nothing is known: the callback is not asked */
  self.fail_infer = 9;
  ok(cohort_symbol_infer_shape(symbol, known, 0, &complete, NULL, NULL, NULL));
  assert_int_equal(complete, 0);
  cohort_descs_free(known);
  self.fail_infer = 0;
  self.wrong_infer = 1;
  fails(try_simple_bind(&executor, symbol, desc("data", SHAPE(3), NULL), NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "infer_shape, outputs: expected 1, found 2");
  end(&self);
}

static void it_comes_and_goes_with_json(void **state) {
  host self;
  cohort_symbol *symbol, *loaded = NULL;
  cohort_executor *executor;
  const char *json = NULL;
  char *copy;

  (void)state;
  begin(&self, 0);
  symbol = network();
  ok(cohort_symbol_to_json(symbol, &json));
  assert_non_null(strstr(json, "\"op_type\": \"scale\""));
  assert_non_null(strstr(json, "\"factor\": \"3\""));
  ok(cohort_symbol_from_json(json, strlen(json), &loaded));
  copy = malloc(strlen(json) + 1);
  assert_non_null(copy);
  strcpy(copy, json);
  executor = simple_bind_with(loaded, desc("data", SHAPE(2), NULL), "null");
  set_arg(executor, "data", 1, 2);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 3, 12);
  ok(cohort_custom_unregister("scale")); /* existing nodes stay valid */
  assert_int_equal(self.num_ended, 0);
  set_arg(executor, "data", 2, 2);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 12, 12);
  fails(cohort_symbol_from_json(copy, strlen(copy), &loaded), COHORT_ERROR_FORMAT,
        "no custom operator 'scale' is registered");
  free(copy);
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
  assert_int_equal(self.num_ended, 1);
  assert_int_equal(self.num_released, self.num_created);
  fails(cohort_custom_unregister("scale"), COHORT_ERROR_NAME, "'scale'");
  pthread_mutex_destroy(&self.mutex);
}

static void what_is_registered_wrongly_is_refused(void **state) {
  host self;
  cohort_custom_op op;

  (void)state;
  begin(&self, 0);
  op = scale_op(&self);
  fails(cohort_custom_register("scale", &op), COHORT_ERROR_NAME, "'scale' is registered already");
  fails(cohort_custom_register("", &op), COHORT_ERROR_INVALID_ARGUMENT, "op_type");
  fails(cohort_custom_register(NULL, &op), COHORT_ERROR_INVALID_ARGUMENT, "op_type");
  fails(cohort_custom_register("other", NULL), COHORT_ERROR_INVALID_ARGUMENT, "op");
  op.any_thread = 2;
  fails(cohort_custom_register("other", &op), COHORT_ERROR_INVALID_ARGUMENT, "any_thread");
  op.any_thread = 0;
  op.forward = NULL;
  fails(cohort_custom_register("other", &op), COHORT_ERROR_INVALID_ARGUMENT, "forward");
  op = scale_op(&self);
  op.declare = NULL;
  fails(cohort_custom_register("other", &op), COHORT_ERROR_INVALID_ARGUMENT, "declare");
  cohort_custom_op_init(&op, sizeof op);
  assert_int_equal(op.struct_size, sizeof op);
  assert_int_equal(self.num_ended, 0);
  end(&self);
}

static void failures_come_out_and_nothing_breaks(void **state) {
  int mode;

  (void)state;
  for (mode = 0; mode < 2; ++mode) { /* on the calling thread, on any */
    host self;
    cohort_executor *executor = NULL;
    cohort_symbol *data, *made = NULL;
    const char *const keys[] = {"op_type"}, *const values[] = {"scale"};
    cohort_ndarray *output;
    float three[3];
    cohort_error *error;

    begin(&self, mode);
    self.fail_declare = 5;
    data = variable("data");
    fails(cohort_symbol_create("Custom", "c", keys, values, 1, &data, NULL, 1, &made), COHORT_ERROR_INVALID_ARGUMENT,
          "callback 'declare' returned 5");
    cohort_symbol_free(data);
    self.fail_declare = 0;
    self.fail_infer = 6;
    fails(try_simple_bind(&executor, network(), desc("data", SHAPE(3), NULL), NULL), COHORT_ERROR_INVALID_ARGUMENT,
          "callback 'infer_shape' returned 6");
    self.fail_infer = 0;
    self.fail_create = 7;
    fails(try_simple_bind(&executor, network(), desc("data", SHAPE(3), NULL), NULL), COHORT_ERROR_EXECUTION,
          "callback 'create' returned 7");
    self.fail_create = 0;

    executor = simple_bind_with(network(), desc("data", SHAPE(3), NULL), "write");
    set_arg(executor, "data", 1, 2, 3);
    self.fail_forward = 8;
    error = cohort_executor_forward(executor, 1);
    if (!error) error = cohort_executor_wait(executor);
    fails(error, COHORT_ERROR_EXECUTION, "Custom 'scale': callback 'forward' returned 8");
    output = output_of(executor, 0);
    fails(cohort_ndarray_read(output, three, sizeof three), COHORT_ERROR_EXECUTION, "callback 'forward' returned 8");
    cohort_ndarray_free(output);
    self.fail_forward = 0;
    set_aux(executor, "scale_calls", 0); /* the pass may have changed it */
    ok(cohort_executor_forward(executor, 1));
    holds_free(output_of(executor, 0), 3, 12, 27);
    self.fail_backward = 9;
    error = try_backward_with(executor, floats(SHAPE(3), FLOATS(1, 1, 1)), 1);
    if (!error) error = cohort_executor_wait(executor);
    fails(error, COHORT_ERROR_EXECUTION, "callback 'backward' returned 9");
    self.fail_backward = 0;
    ok(cohort_executor_forward(executor, 1));
    ok(try_backward_with(executor, floats(SHAPE(3), FLOATS(1, 1, 1)), 1));
    holds_free(grad_of(executor, "data"), 6, 12, 18);
    cohort_executor_free(executor);
    end(&self);
  }
}

static void arrays_are_lent_for_the_call_alone(void **state) {
  host self;
  cohort_executor *executor;
  const cohort_context host_memory = {COHORT_DEVICE_CPU, 0}; /* given to callbacks, on whatever device the operator
                                                              * runs */
  const int64_t shape[] = {3};
  cohort_ndarray *other = NULL, *part = NULL;
  float three[3] = {7, 7, 7};

  (void)state;
  ok(cohort_ndarray_from_host(three, sizeof three, shape, 1, COHORT_DTYPE_FLOAT32, &host_memory, &other));
  begin(&self, 0);
  self.keep = 1;
  executor = simple_bind_with(network(), desc("data", SHAPE(3), NULL), "null");
  set_arg(executor, "data", 1, 2, 3);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 3, 12, 27);
  assert_non_null(self.kept);
  fails(cohort_ndarray_read(self.kept, three, sizeof three), COHORT_ERROR_EXECUTION, "valid only during a callback");
  fails(cohort_ndarray_write(self.kept, three, sizeof three), COHORT_ERROR_EXECUTION, "valid only during a callback");
  fails(cohort_ndarray_fill(self.kept, 7), COHORT_ERROR_EXECUTION, "valid only during a callback");
  ok(cohort_ndarray_slice(self.kept, 0, 2, &part));
  fails(cohort_ndarray_fill(part, 7), COHORT_ERROR_EXECUTION, "valid only during a callback");
  fails(cohort_ndarray_copy_to(other, self.kept), COHORT_ERROR_EXECUTION, "valid only during a callback");
  fails(cohort_operator_invoke("square", NULL, NULL, 0, &other, 1, &self.kept, 1, NULL, NULL), COHORT_ERROR_EXECUTION,
        "valid only during a callback");
  fails(cohort_ndarray_read(self.kept, three, sizeof three), COHORT_ERROR_EXECUTION, "valid only during a callback");
  holds_free(arg_of(executor, "data"), 1, 2, 3);
  cohort_ndarray_free(other);
  cohort_ndarray_free(part);
  cohort_ndarray_free(self.kept);
  cohort_executor_free(executor);
  end(&self);
}

/* Operators that the callback applies do not wait behind those that wait for the callback. */
static void callbacks_apply_operators_while_others_wait_for_them(void **state) {
  host self;
  cohort_executor *executor;
  int i;

  (void)state;
  begin(&self, 1);
  self.with_operator = 1;
  executor = simple_bind_with(network(), desc("data", SHAPE(300, 300), NULL), "null");
  fill(arg_of(executor, "data"), 2);
  for (i = 0; i < 20; ++i) {
    cohort_ndarray *output = output_of(executor, 0), *sum = NULL;
    cohort_arrays *outputs = NULL;

    ok(cohort_executor_forward(executor, 0));
    ok(cohort_operator_invoke("sum", NULL, NULL, 0, &output, 1, NULL, 0, NULL, &outputs));
    ok(cohort_executor_forward(executor, 0));
    ok(cohort_arrays_get(outputs, 0, &sum));
    holds_free(sum, 12 * 300 * 300);
    cohort_arrays_free(outputs);
    cohort_ndarray_free(output);
  }
  cohort_executor_free(executor);
  end(&self);
}

/* The output of a custom operator on constants is not computed once and kept: the callback runs in each pass, on the
 * calling thread. */
static void it_runs_in_each_pass_of_inference(void **state) {
  host self;
  cohort_symbol *net;
  cohort_group *group;
  int i;

  (void)state;
  begin(&self, 0);
  net = scale_node("2", variable_with("w", "__shape__", "(2,)"));
  net = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), net));
  group = bind_for_inference(net, 1, desc("data", SHAPE(2), NULL), NULL, NAMES("w"), NULL);
  set_param(group, "w", floats(SHAPE(2), FLOATS(10, 20)));
  for (i = 1; i <= 3; ++i) {
    forward(group, floats(SHAPE(2), FLOATS(1, 2)), NULL, 0);
    holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 21, 42);
    assert_int_equal(self.num_forward, i);
  }
  assert_int_equal(self.on_other_threads, 0);
  cohort_group_free(group);
  end(&self);
}

/* num_args is passed on to the custom operator, too. */
static void all_other_attributes_are_the_hosts(void **state) {
  const char *const keys[] = {"op_type", "num_args", "factor", "__lr_mult__"}, *const values[] = {"scale", "7", "2",
                                                                                                  "1"};
  host self;
  cohort_symbol *data, *made = NULL, *loaded = NULL;
  const char *json = NULL;

  (void)state;
  begin(&self, 0);
  data = variable("data");
  ok(cohort_symbol_create("Custom", "c", keys, values, 4, &data, NULL, 1, &made));
  cohort_symbol_free(data);
  ok(cohort_symbol_to_json(made, &json));
  assert_non_null(strstr(json, "\"num_args\": \"7\""));
  ok(cohort_symbol_from_json(json, strlen(json), &loaded));
  cohort_symbol_free(made);
  cohort_symbol_free(loaded);
  made = network();
  ok(cohort_symbol_to_json(made, &json));
  assert_null(strstr(json, "num_args"));
  cohort_symbol_free(made);
  end(&self);
}

/* A layer whose input wants no gradient keeps its states in training, even if the custom operator writes them. */
static void frozen_ones_keep_their_states(void **state) {
  const char *const write = "write", *const w = "w";
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  host self;
  cohort_executor *executor;
  cohort_symbol *net;

  (void)state;
  begin(&self, 0);
  net = node("elemwise_mul", "mul", NO_ATTRS, INPUTS(scale_node("2", variable("data")), variable("w")));
  options.grad_req_list = &write;
  options.grad_req_names = &w;
  options.num_grad_reqs = 1;
  executor = simple_bind(net, desc("data", SHAPE(2), NULL), &options);
  set_arg(executor, "data", 1, 2);
  set_arg(executor, "w", 1, 1);
  set_aux(executor, "scale_calls", 40);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 2, 4);
  holds_free(aux_of(executor, "scale_calls"), 40);
  cohort_executor_free(executor);
  end(&self);
}

static int32_t copy_declare(const char *const *keys, const char *const *values, size_t num_attrs, cohort_descs *inputs,
                            cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  (void)keys;
  (void)values;
  (void)num_attrs;
  (void)aux;
  (void)outputs;
  (void)user_data;
  ok(cohort_descs_add(inputs, "data", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  return 0;
}

static int32_t copy_forward(void *of, const cohort_arrays *inputs, const cohort_arrays *aux,
                            const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
  cohort_ndarray *data = entry(inputs, "data"), *output = entry(outputs, "output");

  (void)of;
  (void)aux;
  (void)is_train;
  assert_non_null(data);
  assert_non_null(output);
  ++*(int *)user_data;
  cohort_ndarray_free(data);
  cohort_ndarray_free(output);
  return 0;
}

static void arrays_without_elements_are_arrays(void **state) {
  const char *const key = "op_type", *const value = "copy";
  const int64_t none = 0;
  cohort_custom_op op = COHORT_CUSTOM_OP_INIT;
  cohort_ndarray *empty = NULL;
  cohort_arrays *outputs = NULL;
  int num_calls = 0;

  (void)state;
  op.declare = copy_declare;
  op.forward = copy_forward;
  op.user_data = &num_calls;
  ok(cohort_custom_register("copy", &op));
  ok(cohort_ndarray_zeros(&none, 1, COHORT_DTYPE_FLOAT32, NULL, &empty));
  ok(cohort_operator_invoke("Custom", &key, &value, 1, &empty, 1, NULL, 0, NULL, &outputs));
  assert_int_equal(num_calls, 1);
  cohort_arrays_free(outputs);
  cohort_ndarray_free(empty);
  ok(cohort_custom_unregister("copy"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_executor_calls_it),
      TEST(what_it_is_named_and_how_it_infers),
      TEST(it_comes_and_goes_with_json),
      TEST(what_is_registered_wrongly_is_refused),
      TEST(failures_come_out_and_nothing_breaks),
      TEST(arrays_are_lent_for_the_call_alone),
      TEST(callbacks_apply_operators_while_others_wait_for_them),
      TEST(it_runs_in_each_pass_of_inference),
      TEST(all_other_attributes_are_the_hosts),
      TEST(frozen_ones_keep_their_states),
      TEST(arrays_without_elements_are_arrays),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
