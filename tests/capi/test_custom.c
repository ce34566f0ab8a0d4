/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the host's: in executors, groups, JSON, on tapes and applied at once; where their callbacks run, what
 * they are given, and what their failures do. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "support/executor_tests.h"

/* ---- an operator: output = factor * data; its state counts passes, its auxiliary state those of training ------------
 */

typedef struct host {
  int num_declared, num_created, num_released, num_forward, num_backward, num_ended;
  int32_t fail_declare, fail_infer, fail_create, fail_forward, fail_backward;
  int wrong_infer;   /* one output too many */
  int with_operator; /* forward applies an operator to the lent arrays */
  int keep;          /* forward keeps a handle on its input */
  cohort_ndarray *kept;
  pthread_t caller;
  int on_other_threads; /* calls of forward and backward that were */
  cohort_context context;
  pthread_mutex_t mutex;
} host;

typedef struct scale_state {
  double factor;
  int num_forward;
} scale_state;

static double factor_of(const char *const *keys, const char *const *values, size_t num_attrs) {
  size_t i;

  for (i = 0; i < num_attrs; ++i)
    if (strcmp(keys[i], "factor") == 0) return atof(values[i]);
  return 1;
}

static int32_t scale_declare(const char *const *keys, const char *const *values, size_t num_attrs, cohort_descs *inputs,
                             cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  host *self = user_data;

  (void)keys;
  (void)values;
  (void)num_attrs;
  ++self->num_declared;
  if (self->fail_declare) return self->fail_declare;
  ok(cohort_descs_add(inputs, "data", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(aux, "calls", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(outputs, "scaled", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  return 0;
}

static int32_t scale_infer(const char *const *keys, const char *const *values, size_t num_attrs,
                           const cohort_descs *known, cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs,
                           void *user_data) {
  const int64_t one = 1;
  const host *self = user_data;
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0, dtype = 0;

  (void)keys;
  (void)values;
  (void)num_attrs;
  (void)inputs; /* as they are known */
  if (self->fail_infer) return self->fail_infer;
  ok(cohort_descs_get(known, 0, NULL, shape, COUNT(shape), &num_axes, &dtype, NULL));
  assert_true(num_axes >= 0);
  ok(cohort_descs_add(aux, "", &one, 1, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(outputs, "", shape, num_axes, COHORT_DTYPE_NONE, NULL));
  if (self->wrong_infer) ok(cohort_descs_add(outputs, "", shape, num_axes, COHORT_DTYPE_NONE, NULL));
  return 0;
}

static int32_t scale_create(const char *const *keys, const char *const *values, size_t num_attrs,
                            const cohort_context *context, void **out_state, void *user_data) {
  host *self = user_data;
  scale_state *state;

  assert_null(*out_state);
  self->context = *context;
  if (self->fail_create) return self->fail_create;
  state = calloc(1, sizeof *state);
  assert_non_null(state);
  state->factor = factor_of(keys, values, num_attrs);
  ++self->num_created;
  *out_state = state;
  return 0;
}

static void note_thread(host *self, int *count) {
  pthread_mutex_lock(&self->mutex);
  ++*count;
  if (!pthread_equal(pthread_self(), self->caller)) ++self->on_other_threads;
  pthread_mutex_unlock(&self->mutex);
}

static cohort_ndarray *entry(const cohort_arrays *arrays, const char *name) {
  cohort_ndarray *array = NULL;
  size_t index = 0;

  ok(cohort_arrays_find(arrays, name, &index));
  ok(cohort_arrays_get(arrays, index, &array));
  return array;
}

/* to = factor * from; frees both. */
static void scale_into(cohort_ndarray *from, cohort_ndarray *to, double factor) {
  int64_t size = 0;
  size_t bytes, i;
  float *values;

  ok(cohort_ndarray_size(from, &size));
  bytes = (size_t)size * sizeof *values;
  values = malloc(bytes);
  assert_non_null(values);
  ok(cohort_ndarray_read(from, values, bytes));
  for (i = 0; i < (size_t)size; ++i) values[i] = (float)(factor * (double)values[i]);
  ok(cohort_ndarray_write(to, values, bytes));
  free(values);
  cohort_ndarray_free(from);
  cohort_ndarray_free(to);
}

static int32_t scale_forward(void *of, const cohort_arrays *inputs, const cohort_arrays *aux,
                             const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
  host *self = user_data;
  scale_state *state = of;

  note_thread(self, &self->num_forward);
  if (self->fail_forward) return self->fail_forward;
  ++state->num_forward;
  if (self->keep && !self->kept) self->kept = entry(inputs, "data");
  if (is_train) {
    cohort_ndarray *calls = entry(aux, "calls");
    const float count = (float)state->num_forward;

    ok(cohort_ndarray_write(calls, &count, sizeof count));
    cohort_ndarray_free(calls);
  }
  if (self->with_operator) {
    cohort_ndarray *data = entry(inputs, "data"), *scaled = entry(outputs, "scaled");
    const char *const key = "scalar";
    char text[32];
    const char *value = text;

    snprintf(text, sizeof text, "%g", state->factor);
    ok(cohort_operator_invoke("_mul_scalar", &key, &value, 1, &data, 1, &scaled, 1, NULL, NULL));
    cohort_ndarray_free(data);
    cohort_ndarray_free(scaled);
    return 0;
  }
  scale_into(entry(inputs, "data"), entry(outputs, "scaled"), state->factor);
  return 0;
}

static int32_t scale_backward(void *of, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                              const cohort_arrays *aux, const cohort_arrays *outputs, const cohort_arrays *gradients,
                              void *user_data) {
  host *self = user_data;
  const scale_state *state = of;
  size_t num = 0;

  note_thread(self, &self->num_backward);
  if (self->fail_backward) return self->fail_backward;
  assert_true(state->num_forward > 0); /* the state of the forward pass */
  ok(cohort_arrays_num(inputs, &num));
  assert_int_equal(num, 1);
  ok(cohort_arrays_num(aux, &num));
  assert_int_equal(num, 1);
  ok(cohort_arrays_num(outputs, &num));
  assert_int_equal(num, 1);
  scale_into(entry(head_grads, "scaled"), entry(gradients, "data"), state->factor);
  return 0;
}

static void scale_release(void *state, void *user_data) {
  ++((host *)user_data)->num_released;
  free(state);
}

static void host_ended(void *user_data) { ++((host *)user_data)->num_ended; }

static cohort_custom_op scale_op(host *self) {
  cohort_custom_op op = COHORT_CUSTOM_OP_INIT;

  op.declare = scale_declare;
  op.infer_shape = scale_infer;
  op.create = scale_create;
  op.forward = scale_forward;
  op.backward = scale_backward;
  op.release = scale_release;
  op.ended = host_ended;
  op.user_data = self;
  return op;
}

static void begin(host *self, cohort_bool any_thread) {
  cohort_custom_op op = scale_op(self);

  memset(self, 0, sizeof *self);
  pthread_mutex_init(&self->mutex, NULL);
  self->caller = pthread_self();
  op.any_thread = any_thread;
  ok(cohort_custom_register("scale", &op));
}

/* Everything was let go of. */
static void end(host *self) {
  ok(cohort_custom_unregister("scale"));
  assert_int_equal(self->num_released, self->num_created);
  assert_int_equal(self->num_ended, 1);
  pthread_mutex_destroy(&self->mutex);
}

static cohort_symbol *scale_node(const char *factor, cohort_symbol *data) {
  return node("Custom", "scale", ATTRS("op_type", "scale", "factor", factor), INPUTS(data));
}

/* 3 * square(data), whose gradient is 6 * data. */
static cohort_symbol *network(void) {
  return scale_node("3", node("square", "sq", NO_ATTRS, INPUTS(variable("data"))));
}

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
    ok(cohort_executor_forward(executor, 0)); /* inference is bound apart */
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
  known = no_descs(); /* nothing is known: the host is not asked */
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
  ok(cohort_custom_unregister("scale")); /* nodes that there are stay */
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
  float three[3];

  (void)state;
  begin(&self, 0);
  self.keep = 1;
  executor = simple_bind_with(network(), desc("data", SHAPE(3), NULL), "null");
  set_arg(executor, "data", 1, 2, 3);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 3, 12, 27);
  assert_non_null(self.kept);
  fails(cohort_ndarray_read(self.kept, three, sizeof three), COHORT_ERROR_EXECUTION, "lent to a callback");
  cohort_ndarray_free(self.kept);
  cohort_executor_free(executor);
  end(&self);
}

/* Operators applied by the callback do not wait behind those that wait for it. */
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

/* Constants of inference are not derived once and kept: the host is asked in each pass, on the thread that calls. */
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

/* num_args, too, is the host's. */
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

/* A layer whose input wants no gradient keeps its states in training, whatever the host writes. */
static void frozen_ones_keep_their_states(void **state) {
  host self;
  cohort_executor *executor;
  cohort_symbol *net;

  (void)state;
  begin(&self, 0);
  net = node("BlockGrad", "stop", NO_ATTRS, INPUTS(scale_node("2", variable("data"))));
  net = node("elemwise_mul", "mul", NO_ATTRS, INPUTS(net, variable("w")));
  executor = simple_bind_with(net, desc("data", SHAPE(2), NULL), "write");
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

/* ---- at once and on tapes -----------------------------------------------------------------------------------------
 */

static void it_is_applied_at_once(void **state) {
  const char *const keys[] = {"op_type", "factor"}, *const values[] = {"scale", "0.5"};
  host self;
  cohort_ndarray *inputs[2], *output = NULL;
  cohort_arrays *outputs = NULL;
  int i;

  (void)state;
  begin(&self, 0);
  inputs[0] = floats(SHAPE(2), FLOATS(4, 6));
  inputs[1] = floats(SHAPE(1), FLOATS(0));
  for (i = 0; i < 2; ++i) {
    ok(cohort_operator_invoke("Custom", keys, values, 2, inputs, 2, NULL, 0, NULL, &outputs));
    ok(cohort_arrays_get(outputs, 0, &output));
    holds_free(output, 2, 3);
    cohort_arrays_free(outputs);
  }
  assert_int_equal(self.num_created, 2); /* each time a node of its own */
  assert_int_equal(self.on_other_threads, 0);
  self.fail_forward = 3;
  fails(cohort_operator_invoke("Custom", keys, values, 2, inputs, 2, NULL, 0, NULL, &outputs), COHORT_ERROR_EXECUTION,
        "callback 'forward' returned 3");
  cohort_ndarray_free(inputs[0]);
  cohort_ndarray_free(inputs[1]);
  end(&self);
}

/* Where it may be called on any thread, small ones, too, may apply operators; the last handles go while they run. */
static void callbacks_applied_at_once_apply_operators(void **state) {
  const char *const keys[] = {"op_type", "factor"}, *const values[] = {"scale", "0.5"};
  int i;

  (void)state;
  for (i = 0; i < 20; ++i) {
    host self;
    cohort_ndarray *inputs[2];
    cohort_arrays *outputs = NULL;

    begin(&self, 1);
    self.with_operator = 1;
    inputs[0] = counted(SHAPE(2 + i), 1);
    inputs[1] = floats(SHAPE(1), FLOATS(0));
    ok(cohort_operator_invoke("Custom", keys, values, 2, inputs, 2, NULL, 0, NULL, &outputs));
    cohort_arrays_free(outputs);
    cohort_ndarray_free(inputs[0]);
    cohort_ndarray_free(inputs[1]);
    ok(cohort_wait_all());
    ok(cohort_custom_unregister("scale"));
    pthread_mutex_destroy(&self.mutex);
  }
}

static void it_is_recorded_by_tapes(void **state) {
  const char *const keys[] = {"op_type", "factor"}, *const values[] = {"scale", "0.5"};
  const int32_t req = COHORT_GRAD_WRITE;
  host self;
  cohort_tape *tape = NULL;
  cohort_ndarray *inputs[2], *output = NULL, *gradient = floats(SHAPE(2), FLOATS(0, 0));
  cohort_arrays *outputs = NULL;

  (void)state;
  begin(&self, 0);
  inputs[0] = floats(SHAPE(2), FLOATS(4, 6));
  inputs[1] = floats(SHAPE(1), FLOATS(0));
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, inputs, &gradient, &req, 1));
  ok(cohort_tape_invoke(tape, "Custom", keys, values, 2, inputs, 2, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &output));
  cohort_arrays_free(outputs);
  ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
  holds_free(gradient, 0.5f, 0.5f);
  holds_free(output, 2, 3);
  assert_int_equal(self.on_other_threads, 0);
  cohort_tape_free(tape);
  cohort_ndarray_free(inputs[0]);
  cohort_ndarray_free(inputs[1]);
  end(&self);
}

/* ---- a loss, in a group -------------------------------------------------------------------------------------------
 */

enum { ROWS = 6, COLUMNS = 4, CLASSES = 3, STEPS = 5 };

static int32_t loss_declare(const char *const *keys, const char *const *values, size_t num_attrs, cohort_descs *inputs,
                            cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  (void)keys;
  (void)values;
  (void)num_attrs;
  (void)aux;
  (void)outputs; /* one, "output" */
  (void)user_data;
  ok(cohort_descs_add(inputs, "data", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(inputs, "label", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  return 0;
}

/* The label's shape follows from the data's. */
static int32_t loss_infer(const char *const *keys, const char *const *values, size_t num_attrs,
                          const cohort_descs *known, cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs,
                          void *user_data) {
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0;

  (void)keys;
  (void)values;
  (void)num_attrs;
  (void)aux;
  (void)user_data;
  ok(cohort_descs_get(known, 0, NULL, shape, COUNT(shape), &num_axes, NULL, NULL));
  ok(cohort_descs_add(inputs, "", shape, num_axes, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(inputs, "", shape, 1, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(outputs, "", shape, num_axes, COHORT_DTYPE_NONE, NULL));
  return 0;
}

static size_t read_floats(const cohort_arrays *arrays, const char *name, float *values, size_t capacity) {
  cohort_ndarray *array = entry(arrays, name);
  int64_t size = 0;

  ok(cohort_ndarray_size(array, &size));
  assert_true((size_t)size <= capacity);
  ok(cohort_ndarray_read(array, values, (size_t)size * sizeof *values));
  cohort_ndarray_free(array);
  return (size_t)size;
}

static void write_floats(const cohort_arrays *arrays, const char *name, const float *values, size_t size) {
  cohort_ndarray *array = entry(arrays, name);

  ok(cohort_ndarray_write(array, values, size * sizeof *values));
  cohort_ndarray_free(array);
}

static int32_t loss_forward(void *state, const cohort_arrays *inputs, const cohort_arrays *aux,
                            const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
  float x[ROWS * CLASSES];
  const size_t size = read_floats(inputs, "data", x, COUNT(x));
  size_t row, k;
  host *self = user_data;

  (void)state;
  (void)aux;
  (void)is_train;
  note_thread(self, &self->num_forward);
  for (row = 0; row < size / CLASSES; ++row) {
    float most = x[row * CLASSES], sum = 0;

    for (k = 0; k < CLASSES; ++k) most = fmaxf(most, x[row * CLASSES + k]);
    for (k = 0; k < CLASSES; ++k) sum += x[row * CLASSES + k] = expf(x[row * CLASSES + k] - most);
    for (k = 0; k < CLASSES; ++k) x[row * CLASSES + k] /= sum;
  }
  write_floats(outputs, "output", x, size);
  return 0;
}

static int32_t loss_backward(void *state, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                             const cohort_arrays *aux, const cohort_arrays *outputs, const cohort_arrays *gradients,
                             void *user_data) {
  float y[ROWS * CLASSES], label[ROWS];
  const size_t size = read_floats(outputs, "output", y, COUNT(y)), rows = read_floats(inputs, "label", label, ROWS);
  host *self = user_data;
  cohort_ndarray *unwanted = NULL;
  size_t num = 1, row, index = 0;

  (void)state;
  (void)aux;
  note_thread(self, &self->num_backward);
  ok(cohort_arrays_num(head_grads, &num));
  assert_int_equal(num, 0);
  ok(cohort_arrays_find(gradients, "label", &index));
  ok(cohort_arrays_get(gradients, index, &unwanted));
  assert_null(unwanted);
  for (row = 0; row < rows; ++row) y[row * CLASSES + (size_t)label[row]] -= 1;
  write_floats(gradients, "data", y, size);
  return 0;
}

/* fc1, tanh, fc2, and a softmax loss: MXNet's or the host's. */
static cohort_symbol *classifier(int of_host) {
  cohort_symbol *net = node("FullyConnected", "fc1", ATTRS("num_hidden", "5"), INPUTS(variable("data")));

  net = node("Activation", "act", ATTRS("act_type", "tanh"), INPUTS(net));
  net = node("FullyConnected", "fc2", ATTRS("num_hidden", "3"), INPUTS(net));
  if (!of_host) return node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(net, variable("label")));
  return node("Custom", "softmax", ATTRS("op_type", "loss"), INPUTS(net, variable("label")));
}

/* Trains on two devices; gives fc1_weight. */
static void train(cohort_symbol *symbol, float *weights) {
  cohort_group *group = bind(symbol, 2, desc("data", SHAPE(ROWS, COLUMNS), NULL), desc("label", SHAPE(ROWS), NULL),
                             NAMES("fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"), NULL);
  cohort_optimizer *optimizer = NULL;
  cohort_ndarray *found;
  int step;

  set_param(group, "fc1_weight", counted(SHAPE(5, COLUMNS), 0.02f));
  set_param(group, "fc2_weight", counted(SHAPE(CLASSES, 5), -0.03f));
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  for (step = 0; step < STEPS; ++step) {
    forward(group, counted(SHAPE(ROWS, COLUMNS), 0.1f), floats(SHAPE(ROWS), FLOATS(0, 1, 2, 2, 1, 0)), 1);
    backward(group, NULL);
    ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  }
  found = device_array(group, COHORT_GROUP_PARAMS, 0, 1);
  ok(cohort_ndarray_read(found, weights, 5 * COLUMNS * sizeof *weights));
  cohort_ndarray_free(found);
  cohort_optimizer_free(optimizer);
  cohort_group_free(group);
}

static void a_group_trains_with_a_loss_of_the_host(void **state) {
  float expected[5 * COLUMNS], found[5 * COLUMNS];
  int mode, i;

  (void)state;
  train(classifier(0), expected);
  for (mode = 0; mode < 2; ++mode) { /* on the calling thread, on any */
    host self;
    cohort_custom_op op = COHORT_CUSTOM_OP_INIT;

    memset(&self, 0, sizeof self);
    pthread_mutex_init(&self.mutex, NULL);
    self.caller = pthread_self();
    op.declare = loss_declare;
    op.infer_shape = loss_infer;
    op.forward = loss_forward;
    op.backward = loss_backward;
    op.ended = host_ended;
    op.user_data = &self;
    op.ignores_head_grads = 1;
    op.any_thread = mode;
    ok(cohort_custom_register("loss", &op));
    train(classifier(1), found);
    for (i = 0; i < 5 * COLUMNS; ++i) assert_true(fabsf(found[i] - expected[i]) <= 1e-6f);
    assert_int_equal(self.num_forward, 2 * STEPS);
    assert_int_equal(self.num_backward, 2 * STEPS);
    if (mode == 0) assert_int_equal(self.on_other_threads, 0);
    ok(cohort_custom_unregister("loss"));
    assert_int_equal(self.num_ended, 1);
    pthread_mutex_destroy(&self.mutex);
  }
}

/* All devices run, whichever fails; nothing goes on from a pass that has failed. */
static void a_group_stops_where_the_host_fails(void **state) {
  int mode;

  (void)state;
  for (mode = 0; mode < 2; ++mode) {
    host self;
    cohort_group *group;
    cohort_error *error;

    begin(&self, mode);
    group = bind(network(), 2, desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, NULL);
    self.fail_forward = 4;
    error = try_forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
    if (!error) error = cohort_group_wait(group);
    fails(error, COHORT_ERROR_EXECUTION, "callback 'forward' returned 4");
    assert_int_equal(self.num_forward, 2);
    self.fail_forward = 0;
    if (mode == 0) fails(try_backward(group, counted(SHAPE(4, 2), 1)), COHORT_ERROR_STATE, "the last one failed");
    assert_int_equal(self.num_backward, 0);
    cohort_group_free(group);
    ok(cohort_custom_unregister("scale"));
    pthread_mutex_destroy(&self.mutex);
  }
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
      TEST(callbacks_applied_at_once_apply_operators),
      TEST(a_group_stops_where_the_host_fails),
      TEST(it_is_applied_at_once),
      TEST(it_is_recorded_by_tapes),
      TEST(a_group_trains_with_a_loss_of_the_host),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
