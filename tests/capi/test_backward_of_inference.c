/* SPDX-License-Identifier: Apache-2.0 */
/* Backward after a forward pass with is_train 0: gradients are those of an inference pass (BWD-07, EXE-24). Operators
 * that act differently in training, or that keep something for backward only then, each have a test here. */
#include "support/group_tests.h"

/* An executor of a symbol, which is freed, with a gradient for every argument; data is of this shape and dtype. */
static cohort_executor *bound(cohort_symbol *symbol, const int64_t *shape, int32_t num_axes, int32_t dtype) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;
  cohort_descs *descs = NULL;

  options.grad_req = "write";
  ok(cohort_descs_create(&descs));
  ok(cohort_descs_add(descs, "data", shape, num_axes, dtype, NULL));
  ok(cohort_executor_simple_bind(symbol, NULL, descs, &options, &executor));
  cohort_descs_free(descs);
  cohort_symbol_free(symbol);
  return executor;
}

static cohort_ndarray *array_of(const cohort_executor *executor, int32_t list, const char *name) {
  cohort_ndarray *array = NULL;

  ok(cohort_executor_array_named(executor, list, name, &array));
  return array;
}

/* Sets an array of the executor from float32 values, which are freed. */
static void set(const cohort_executor *executor, int32_t list, const char *name, cohort_ndarray *values) {
  cohort_ndarray *array = array_of(executor, list, name);

  ok(cohort_ndarray_copy_to(values, array));
  cohort_ndarray_free(array);
  cohort_ndarray_free(values);
}

/* A gradient as float32. */
static cohort_ndarray *gradient(const cohort_executor *executor, const char *name) {
  cohort_ndarray *array = array_of(executor, COHORT_EXECUTOR_GRADS, name), *cast = NULL;

  ok(cohort_ndarray_cast(array, COHORT_DTYPE_FLOAT32, &cast));
  cohort_ndarray_free(array);
  return cast;
}

/* Forward with is_train 0, then backward; head is the caller's. */
static void infer_and_go_back(cohort_executor *executor, cohort_ndarray *head, int32_t is_train) {
  ok(cohort_executor_forward(executor, 0));
  ok(cohort_executor_backward(executor, &head, 1, is_train));
}

/* The moving statistics are constants, as in MXNet, and do not change. */
static void check_batch_norm(int32_t dtype, int32_t is_train) {
  cohort_executor *executor =
      bound(node("BatchNorm", "bn", ATTRS("fix_gamma", "False", "eps", "0.001"), INPUTS(variable("data"))), SHAPE(4, 2),
            dtype);
  cohort_ndarray *head = counted(SHAPE(4, 2), 1), *mean;

  set(executor, COHORT_EXECUTOR_ARGS, "data", floats(SHAPE(4, 2), FLOATS(1, 2, 3, 5, 0, -1, 2, 2)));
  set(executor, COHORT_EXECUTOR_ARGS, "bn_gamma", floats(SHAPE(2), FLOATS(2, 4)));
  set(executor, COHORT_EXECUTOR_AUX, "bn_moving_mean", floats(SHAPE(2), FLOATS(1, 2)));
  set(executor, COHORT_EXECUTOR_AUX, "bn_moving_var", floats(SHAPE(2), FLOATS(3.999f, 0.249f)));
  infer_and_go_back(executor, head, is_train);
  holds_free(gradient(executor, "data"), 0, 8, 2, 24, 4, 40, 6, 56); /* head * gamma / sqrt(var + eps) */
  holds_free(gradient(executor, "bn_gamma"), 3, -12);                /* sum of head * (data - mean) / sqrt(..) */
  holds_free(gradient(executor, "bn_beta"), 12, 16);
  mean = array_of(executor, COHORT_EXECUTOR_AUX, "bn_moving_mean");
  if (dtype == COHORT_DTYPE_FLOAT32) holds(mean, 1, 2);
  cohort_ndarray_free(mean);
  cohort_ndarray_free(head);
  cohort_executor_free(executor);
}

static void batch_norm_takes_its_moving_statistics(void **state) {
  (void)state;
  check_batch_norm(COHORT_DTYPE_FLOAT32, 0);
  check_batch_norm(COHORT_DTYPE_FLOAT32, 1);
  check_batch_norm(COHORT_DTYPE_FLOAT64, 0);
  check_batch_norm(COHORT_DTYPE_FLOAT64, 1);
}

static void rrelu_takes_the_mean_slope(void **state) {
  cohort_symbol *symbol =
      node("LeakyReLU", "act", ATTRS("act_type", "rrelu", "lower_bound", "0.25", "upper_bound", "0.75"),
           INPUTS(variable("data")));
  cohort_symbol *first = NULL;
  cohort_executor *executor;
  cohort_ndarray *head = floats(SHAPE(4), FLOATS(1, 2, 3, 4));

  (void)state;
  ok(cohort_symbol_output(symbol, 0, &first)); /* without the slopes */
  cohort_symbol_free(symbol);
  executor = bound(first, SHAPE(4), COHORT_DTYPE_FLOAT32);
  set(executor, COHORT_EXECUTOR_ARGS, "data", floats(SHAPE(4), FLOATS(-1, 1, -2, 2)));
  infer_and_go_back(executor, head, 0);
  holds_free(gradient(executor, "data"), 0.5f, 2, 1.5f, 4);
  cohort_ndarray_free(head);
  cohort_executor_free(executor);
}

/* As in MXNet, rrelu has a second output, the slopes, which models may name as a head; in inference it holds their
 * mean. */
static void rrelu_shows_its_slopes(void **state) {
  static const char json[] =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []},"
      "{\"op\": \"LeakyReLU\", \"name\": \"r\", \"inputs\": [[0, 0, 0]], \"attrs\": {\"act_type\": \"rrelu\","
      " \"lower_bound\": \"0.25\", \"upper_bound\": \"0.75\"}}], \"arg_nodes\": [0], \"heads\": [[1, 0, 0], [1, 1, 0]],"
      " \"attrs\": {\"mxnet_version\": [\"int\", 10901]}}";
  cohort_symbol *symbol = NULL;
  cohort_executor *executor;
  cohort_ndarray *heads[2], *slopes, *found;
  float mask[4], y[4];
  const char *name = NULL;
  size_t i;

  (void)state;
  ok(cohort_symbol_from_json(json, strlen(json), &symbol));
  ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_OUTPUTS, 1, &name));
  assert_string_equal(name, "r_mask");
  executor = bound(symbol, SHAPE(4), COHORT_DTYPE_FLOAT32);
  heads[0] = floats(SHAPE(4), FLOATS(1, 2, 3, 4));
  heads[1] = floats(SHAPE(4), FLOATS(9, 9, 9, 9));
  set(executor, COHORT_EXECUTOR_ARGS, "data", floats(SHAPE(4), FLOATS(-1, 1, -2, 2)));
  ok(cohort_executor_forward(executor, 0));
  slopes = array_of(executor, COHORT_EXECUTOR_OUTPUTS, "r_mask");
  holds_free(slopes, 0.5f, 1, 0.5f, 1);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, heads, 2, 1));
  found = array_of(executor, COHORT_EXECUTOR_OUTPUTS, "r_output");
  ok(cohort_ndarray_read(found, y, sizeof y));
  slopes = array_of(executor, COHORT_EXECUTOR_OUTPUTS, "r_mask");
  ok(cohort_ndarray_read(slopes, mask, sizeof mask));
  assert_true(mask[1] == 1 && mask[3] == 1 && y[1] == 1 && y[3] == 2);
  for (i = 0; i < 4; i += 2) {
    assert_true(mask[i] >= 0.25f && mask[i] <= 0.75f);
    assert_true(y[i] == mask[i] * (i ? -2 : -1));
  }
  holds_free(gradient(executor, "data"), mask[0], 2, 3 * mask[2], 4);
  cohort_ndarray_free(slopes);
  cohort_ndarray_free(found);
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(heads[1]);
  cohort_executor_free(executor);
}

static void dropout_lets_all_through(void **state) {
  cohort_executor *executor =
      bound(node("Dropout", "drop", ATTRS("p", "0.9"), INPUTS(variable("data"))), SHAPE(4), COHORT_DTYPE_FLOAT32);
  cohort_ndarray *head = floats(SHAPE(4), FLOATS(1, 2, 3, 4));

  (void)state;
  infer_and_go_back(executor, head, 1);
  holds_free(gradient(executor, "data"), 1, 2, 3, 4);
  cohort_ndarray_free(head);
  cohort_executor_free(executor);
}

/* An LSTM without dropout gives the same bits in training and in inference. */
static void recurrent_layers_keep_what_they_need(void **state) {
  cohort_symbol *symbol =
      node("RNN", "lstm", ATTRS("mode", "lstm", "state_size", "3", "num_layers", "2"), INPUTS(variable("data")));
  cohort_executor *executor = bound(symbol, SHAPE(2, 2, 3), COHORT_DTYPE_FLOAT32);
  cohort_ndarray *parameters = array_of(executor, COHORT_EXECUTOR_ARGS, "lstm_parameters"), *data, *head, *grad;
  float training[12], inference[12];

  (void)state;
  ok(cohort_ndarray_fill_uniform(parameters, -1, 1, 7));
  data = array_of(executor, COHORT_EXECUTOR_ARGS, "data");
  ok(cohort_ndarray_fill_uniform(data, -1, 1, 8));
  head = counted(SHAPE(2, 2, 3), 0.1f);
  grad = array_of(executor, COHORT_EXECUTOR_GRADS, "data");
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, &head, 1, 1));
  ok(cohort_ndarray_read(grad, training, sizeof(training)));
  infer_and_go_back(executor, head, 0);
  ok(cohort_ndarray_read(grad, inference, sizeof(inference)));
  assert_memory_equal(training, inference, sizeof(training));
  assert_true(training[0] != 0);
  cohort_ndarray_free(parameters);
  cohort_ndarray_free(data);
  cohort_ndarray_free(head);
  cohort_ndarray_free(grad);
  cohort_executor_free(executor);
}

/* After a pass run step by step, backward also uses the numbers that the steps drew last, and later draws continue from
 * there. */
static void steps_are_followed_by_their_own_gradient(void **state) {
  cohort_symbol *drawn = node("_random_uniform", "drawn", ATTRS("shape", "(4,)"), (cohort_symbol *const[]){NULL});
  cohort_executor *executor =
      bound(node("elemwise_mul", "product", NO_ATTRS, INPUTS(variable("data"), drawn)), SHAPE(4), COHORT_DTYPE_FLOAT32);
  cohort_ndarray *head = counted(SHAPE(4), 1), *output = NULL, *grad;
  float whole[4], before[4], shown[4], found[4];
  int round, step;

  (void)state;
  ok(cohort_executor_array(executor, COHORT_EXECUTOR_OUTPUTS, 0, &output));
  grad = array_of(executor, COHORT_EXECUTOR_GRADS, "data");
  fill(array_of(executor, COHORT_EXECUTOR_ARGS, "data"), 1);
  ok(cohort_executor_forward(executor, 0));
  ok(cohort_ndarray_read(output, whole, sizeof whole));
  memcpy(before, whole, sizeof before);
  for (round = 0; round < 3; ++round) {
    int32_t left = 1;

    for (step = 0; left > 0; ++step) {
      ok(cohort_executor_partial_forward(executor, 0, step, &left));
      if (round == 2) ok(cohort_executor_partial_forward(executor, 0, step, &left)); /* draws again */
    }
    ok(cohort_ndarray_read(output, shown, sizeof shown));
    assert_memory_not_equal(shown, before, sizeof shown);
    ok(cohort_executor_backward(executor, &head, 1, 0));
    ok(cohort_ndarray_read(output, found, sizeof found));
    assert_memory_equal(found, shown, sizeof found);
    ok(cohort_ndarray_read(grad, found, sizeof found));
    for (step = 0; step < 4; ++step) assert_true(found[step] == (float)step * shown[step]);
    memcpy(before, shown, sizeof before);
  }
  assert_memory_not_equal(shown, whole, sizeof shown);
  cohort_ndarray_free(head);
  cohort_ndarray_free(output);
  cohort_ndarray_free(grad);
  cohort_executor_free(executor);
}

/* Executors made by reshape draw from the same random sequences. If one of them repeats its pass, the others do not
 * draw their earlier numbers again. */
static void a_repeated_pass_takes_nobody_back(void **state) {
  cohort_symbol *drawn = node("_random_uniform", "drawn", ATTRS("shape", "(4,)"), (cohort_symbol *const[]){NULL});
  cohort_symbol *sum = node("mean", "mean", ATTRS("axis", "0", "keepdims", "1"), INPUTS(variable("data")));
  cohort_executor *first =
      bound(node("broadcast_mul", "product", NO_ATTRS, INPUTS(sum, drawn)), SHAPE(1, 4), COHORT_DTYPE_FLOAT32);
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  cohort_descs *known = desc("data", SHAPE(2, 4), NULL);
  cohort_ndarray *head = counted(SHAPE(1, 4), 1), *output = NULL;
  cohort_executor *second = NULL;
  float seen[6][4];
  int i, k;

  (void)state;
  options.allow_up_sizing = 1;
  ok(cohort_executor_reshape(first, known, &options, &second));
  cohort_descs_free(known);
  fill(array_of(first, COHORT_EXECUTOR_ARGS, "data"), 1);
  fill(array_of(second, COHORT_EXECUTOR_ARGS, "data"), 1);
  ok(cohort_executor_array(second, COHORT_EXECUTOR_OUTPUTS, 0, &output));
  for (i = 0; i < 6; ++i) {
    if (i % 2 == 0) ok(cohort_executor_forward(first, 0));
    ok(cohort_executor_forward(second, 0));
    ok(cohort_ndarray_read(output, seen[i], sizeof seen[i]));
    if (i % 2 == 1) ok(cohort_executor_backward(first, &head, 1, 0));
    for (k = 0; k < i; ++k) assert_memory_not_equal(seen[i], seen[k], sizeof seen[i]);
  }
  cohort_ndarray_free(head);
  cohort_ndarray_free(output);
  cohort_executor_free(first);
  cohort_executor_free(second);
}

/* DEF-76: an executor without gradients fuses more, and computes the same: two blocks whose norm and relu come before
 * the convolution, each added to what it begins with. */
static void networks_infer_the_same_without_gradients(void **state) {
  static const char *const params[] = {"bn1_gamma", "bn1_beta", "bn2_gamma", "bn2_beta"};
  static const char *const filters[] = {"conv1_weight", "conv2_weight"};
  static const char *const stats[] = {"bn1_moving_mean", "bn1_moving_var", "bn2_moving_mean", "bn2_moving_var"};
  const char *const norms[] = {"bn1", "bn2"}, *const convolutions[] = {"conv1", "conv2"};
  cohort_ndarray *outputs[2] = {NULL, NULL};
  float values[2][4 * 6 * 6];
  int learns, i;

  (void)state;
  for (learns = 0; learns < 2; ++learns) {
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
    cohort_executor *executor = NULL;
    cohort_descs *descs = desc("data", SHAPE(1, 4, 6, 6), NULL);
    cohort_symbol *net = variable("data");

    for (i = 0; i < 2; ++i) {
      cohort_symbol *both = NULL, *block;

      ok(cohort_symbol_copy(net, &both));
      block = node("BatchNorm", norms[i], ATTRS("fix_gamma", "False"), INPUTS(net));
      block = node("Activation", NULL, ATTRS("act_type", "relu"), INPUTS(block));
      block = node("Convolution", convolutions[i],
                   ATTRS("kernel", "(3,3)", "pad", "(1,1)", "num_filter", "4", "no_bias", "True"), INPUTS(block));
      net = node("elemwise_add", NULL, NO_ATTRS, INPUTS(block, both));
    }
    options.grad_req = learns ? "write" : "null";
    ok(cohort_executor_simple_bind(net, NULL, descs, &options, &executor));
    cohort_descs_free(descs);
    cohort_symbol_free(net);
    set(executor, COHORT_EXECUTOR_ARGS, "data", counted(SHAPE(1, 4, 6, 6), 0.01f));
    for (i = 0; i < 4; ++i) set(executor, COHORT_EXECUTOR_ARGS, params[i], counted(SHAPE(4), 0.3f));
    for (i = 0; i < 2; ++i) set(executor, COHORT_EXECUTOR_ARGS, filters[i], counted(SHAPE(4, 4, 3, 3), 0.002f));
    for (i = 0; i < 4; ++i) set(executor, COHORT_EXECUTOR_AUX, stats[i], counted(SHAPE(4), 0.5f));
    ok(cohort_executor_forward(executor, 0));
    ok(cohort_executor_array(executor, COHORT_EXECUTOR_OUTPUTS, 0, &outputs[learns]));
    ok(cohort_ndarray_read(outputs[learns], values[learns], sizeof values[learns]));
    cohort_ndarray_free(outputs[learns]);
    cohort_executor_free(executor);
  }
  for (i = 0; i < 4 * 6 * 6; ++i) assert_float_equal(values[0][i], values[1][i], 1e-4f * (1 + values[1][i]));
  assert_true(values[0][4 * 6 * 6 - 1] > 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_repeated_pass_takes_nobody_back),
      TEST(networks_infer_the_same_without_gradients),
      TEST(steps_are_followed_by_their_own_gradient),
      TEST(batch_norm_takes_its_moving_statistics),
      TEST(rrelu_takes_the_mean_slope),
      TEST(rrelu_shows_its_slopes),
      TEST(dropout_lets_all_through),
      TEST(recurrent_layers_keep_what_they_need),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
