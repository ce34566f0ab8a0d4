/* SPDX-License-Identifier: Apache-2.0 */
/* Custom operators applied at once, on tapes, and as the loss of a group. */
#include <math.h>

#include "support/scale_op.h"

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

/* Custom operators that may be called on any thread may apply operators themselves, small ones too; the last handles
 * are freed while they run. */
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

/* ---- callbacks that apply operators on the network's context and on others ---- */

static cohort_ndarray *held; /* of the first context of these tests */

static int32_t declare_one_input(const char *const *keys, const char *const *values, size_t num_attrs,
                                 cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  (void)keys;
  (void)values;
  (void)num_attrs;
  (void)aux;
  (void)outputs;
  (void)user_data;
  return cohort_descs_add(inputs, "data", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL) ? 1 : 0;
}

/* Squares its input; meanwhile applies one built-in and one custom operator to host arrays. */
static int32_t square_and_apply(void *of, const cohort_arrays *inputs, const cohort_arrays *aux,
                                const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
  cohort_ndarray *x = NULL, *y = NULL;
  cohort_arrays *results = NULL;

  (void)of;
  (void)aux;
  (void)is_train;
  (void)user_data;
  ok(cohort_operator_invoke("exp", NULL, NULL, 0, &held, 1, NULL, 0, NULL, &results));
  ok(cohort_arrays_get(results, 0, &y));
  holds_free(y, 1, 1);
  cohort_arrays_free(results);
  ok(cohort_operator_invoke("_contrib_fft", NULL, NULL, 0, &held, 1, NULL, 0, NULL, &results));
  ok(cohort_arrays_get(results, 0, &y));
  holds_free(y, 0, 0, 0, 0);
  cohort_arrays_free(results);
  ok(cohort_arrays_get(inputs, 0, &x));
  ok(cohort_arrays_get(outputs, 0, &y));
  ok(cohort_operator_invoke("square", NULL, NULL, 0, &x, 1, &y, 1, NULL, NULL));
  cohort_ndarray_free(x);
  cohort_ndarray_free(y);
  return 0;
}

static void callbacks_apply_operators_on_any_context(void **state) {
  static const float values[] = {2, 3}, zeros[] = {0, 0};
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};
  const char *const key = "op_type", *const mine = "mine";
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_custom_op op = COHORT_CUSTOM_OP_INIT;
  int where;

  (void)state;
  op.declare = declare_one_input;
  op.forward = square_and_apply;
  ok(cohort_ndarray_from_host(zeros, sizeof(zeros), SHAPE(2), COHORT_DTYPE_FLOAT32, test_contexts(), &held));
  for (op.any_thread = 0; op.any_thread < 2; ++op.any_thread) {
    ok(cohort_custom_register(mine, &op));
    for (where = 0; where < 3; ++where) {
      const cohort_context *const context = where == 2 ? &cpu : &test_contexts()[where];
      cohort_arrays *outputs = NULL;
      cohort_ndarray *x = NULL, *y = NULL;
      cohort_executor *executor = NULL;
      cohort_descs *known = desc("x", SHAPE(2), NULL);
      cohort_symbol *symbol = node("Custom", "c", ATTRS("op_type", "mine"), INPUTS(variable("x")));

      ok(cohort_ndarray_from_host(values, sizeof(values), SHAPE(2), COHORT_DTYPE_FLOAT32, context, &x));
      ok(cohort_operator_invoke("Custom", &key, &mine, 1, &x, 1, NULL, 0, NULL, &outputs));
      ok(cohort_arrays_get(outputs, 0, &y));
      holds_free(y, 4, 9);
      cohort_arrays_free(outputs);
      ok(cohort_operator_invoke("Custom", &key, &mine, 1, &x, 1, &x, 1, NULL, NULL)); /* in place */
      holds_free(x, 4, 9);
      ok(cohort_executor_simple_bind(symbol, context, known, &options, &executor));
      ok(cohort_executor_array(executor, COHORT_EXECUTOR_ARGS, 0, &x));
      ok(cohort_ndarray_write(x, values, sizeof(values)));
      ok(cohort_executor_forward(executor, 0));
      holds_free(output_of(executor, 0), 4, 9);
      cohort_ndarray_free(x);
      cohort_executor_free(executor);
      cohort_symbol_free(symbol);
      cohort_descs_free(known);
    }
    ok(cohort_custom_unregister(mine));
  }
  cohort_ndarray_free(held);
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

/* Two layers, or two steps of a sequence, that share a state which training writes. */
static void tapes_record_it_twice_with_one_state(void **state) {
  const char *const keys[] = {"op_type", "factor"}, *const values[] = {"scale", "0.5"};
  const int32_t req = COHORT_GRAD_WRITE;
  host self;
  cohort_tape *tape = NULL;
  cohort_ndarray *inputs[2], *given[2], *gradient = floats(SHAPE(2), FLOATS(0, 0));
  cohort_arrays *outputs = NULL;
  int i;

  (void)state;
  begin(&self, 0);
  inputs[0] = given[0] = floats(SHAPE(2), FLOATS(4, 6));
  inputs[1] = given[1] = floats(SHAPE(1), FLOATS(0));
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, inputs, &gradient, &req, 1));
  for (i = 0; i < 2; ++i) {
    ok(cohort_tape_invoke(tape, "Custom", keys, values, 2, given, 2, NULL, 0, NULL, &outputs));
    if (i > 0) cohort_ndarray_free(given[0]);
    ok(cohort_arrays_get(outputs, 0, &given[0]));
    cohort_arrays_free(outputs);
  }
  holds(inputs[1], 1); /* each node counts its own */
  ok(cohort_tape_backward(tape, &given[0], NULL, 1, NULL));
  holds_free(gradient, 0.25f, 0.25f);
  cohort_tape_free(tape);
  cohort_ndarray_free(given[0]);
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

/* The label's shape is inferred from the data's. */
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

/* fc1, tanh, fc2, and a softmax loss: the built-in or the custom one. */
static cohort_symbol *classifier(int of_host) {
  cohort_symbol *net = node("FullyConnected", "fc1", ATTRS("num_hidden", "5"), INPUTS(variable("data")));

  net = node("Activation", "act", ATTRS("act_type", "tanh"), INPUTS(net));
  net = node("FullyConnected", "fc2", ATTRS("num_hidden", "3"), INPUTS(net));
  if (!of_host) return node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(net, variable("label")));
  return node("Custom", "softmax", ATTRS("op_type", "loss"), INPUTS(net, variable("label")));
}

/* Trains on two devices; returns fc1_weight. */
static void train(cohort_symbol *symbol, float *weights) {
  cohort_group *group =
      bind_for_training(symbol, 2, desc("data", SHAPE(ROWS, COLUMNS), NULL), desc("label", SHAPE(ROWS), NULL),
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

/* All devices run even if one fails; nothing continues from a failed pass. */
static void a_group_stops_where_the_host_fails(void **state) {
  int mode;

  (void)state;
  for (mode = 0; mode < 2; ++mode) {
    host self;
    cohort_group *group;
    cohort_error *error;

    begin(&self, mode);
    group = bind_for_training(network(), 2, desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, NULL);
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

/* ---- a host that declares other outputs each time it is asked ---- */

static int32_t declare_fewer_each_time(const char *const *keys, const char *const *values, size_t num_attrs,
                                       cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs,
                                       void *user_data) {
  int *const num_outputs = user_data;
  char name[32];
  int i;

  (void)keys;
  (void)values;
  (void)num_attrs;
  (void)aux;
  ok(cohort_descs_add(inputs, "data", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  for (i = 0; i < *num_outputs; ++i) {
    snprintf(name, sizeof name, "output%d", i);
    ok(cohort_descs_add(outputs, name, NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  }
  *num_outputs = 1;
  return 0;
}

static int32_t count_outputs(void *of, const cohort_arrays *inputs, const cohort_arrays *aux,
                             const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
  cohort_ndarray *y = NULL;
  size_t num = 0, i;

  (void)of;
  (void)inputs;
  (void)aux;
  (void)is_train;
  (void)user_data;
  ok(cohort_arrays_num(outputs, &num));
  for (i = 0; i < num; ++i) {
    const float value = (float)num;

    ok(cohort_arrays_get(outputs, i, &y));
    ok(cohort_ndarray_write(y, &value, sizeof value));
    cohort_ndarray_free(y);
  }
  return 0;
}

/* A tape that records it or does not, and an operator applied at once, ask the host once in a call. */
static void a_call_takes_the_first_answer_of_the_host(void **state) {
  const char *const key = "op_type", *const fickle = "fickle";
  const cohort_grad_req write = COHORT_GRAD_WRITE;
  cohort_custom_op op = COHORT_CUSTOM_OP_INIT;
  int num_outputs = 0, call;

  (void)state;
  op.declare = declare_fewer_each_time;
  op.forward = count_outputs;
  op.user_data = &num_outputs;
  ok(cohort_custom_register(fickle, &op));
  for (call = 0; call < 3; ++call) {
    cohort_tape *tape = NULL;
    cohort_ndarray *x = floats(SHAPE(1), FLOATS(3)), *last = NULL;
    cohort_arrays *outputs = NULL;
    size_t num = 0;

    ok(cohort_tape_create(&tape));
    if (call == 1) ok(cohort_tape_mark(tape, &x, NULL, &write, 1));
    num_outputs = 40;
    if (call == 2) {
      ok(cohort_operator_invoke("Custom", &key, &fickle, 1, &x, 1, NULL, 0, NULL, &outputs));
    } else {
      ok(cohort_tape_invoke(tape, "Custom", &key, &fickle, 1, &x, 1, NULL, 0, NULL, &outputs));
    }
    ok(cohort_arrays_num(outputs, &num));
    assert_int_equal(num, 40);
    ok(cohort_arrays_get(outputs, 39, &last));
    holds_free(last, 40);
    cohort_arrays_free(outputs);
    cohort_ndarray_free(x);
    cohort_tape_free(tape);
  }
  ok(cohort_custom_unregister(fickle));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(it_is_applied_at_once),
      TEST(callbacks_applied_at_once_apply_operators),
      TEST(callbacks_apply_operators_on_any_context),
      TEST(a_call_takes_the_first_answer_of_the_host),
      TEST(it_is_recorded_by_tapes),
      TEST(tapes_record_it_twice_with_one_state),
      TEST(a_group_trains_with_a_loss_of_the_host),
      TEST(a_group_stops_where_the_host_fails),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
