/* SPDX-License-Identifier: Apache-2.0 */
/* Networks whose layers are on several devices by `__ctx_group__`: the same bits as on one device, with any number of
 * passes in flight. EXE-10, EXE-11. */
#include <stdio.h>

#include "support/group_tests.h"

enum { STEPS = 6, BATCH = 4, WIDTH = 3, UNITS = 5, LAYERS = 3, LARGEST = 4096 };

static const char *const layer_names[] = {"layer0", "layer1", "layer2"};

/* ---- an LSTM ----------------------------------------------------------------------------------------------------- */

static cohort_symbol *again(const cohort_symbol *symbol, size_t output) {
  cohort_symbol *same = NULL;

  ok(cohort_symbol_output(symbol, output, &same));
  return same;
}

/* Adds a context group to a node of one output; a node without a group runs where its first input is. */
static cohort_symbol *in_layer(cohort_symbol *symbol, const char *layer) {
  const char *const key = "ctx_group";

  ok(cohort_symbol_set_attrs(symbol, &key, &layer, 1));
  return symbol;
}

static cohort_symbol *gate(cohort_symbol *gates, size_t which, const char *type, const char *layer) {
  return in_layer(node("Activation", NULL, ATTRS("act_type", type), INPUTS(again(gates, which))), layer);
}

/* One layer at one step; state: cell and hidden state, NULL at the first step. Frees the input. */
static cohort_symbol *cell(cohort_symbol *input, cohort_symbol *const weights[3], cohort_symbol *state[2],
                           const char *layer) {
  cohort_symbol *gates, *in, *next;

  gates = in_layer(node("FullyConnected", NULL, ATTRS("num_hidden", "20"),
                        INPUTS(input, again(weights[0], 0), again(weights[1], 0))),
                   layer);
  if (state[1]) {
    cohort_symbol *past = node("FullyConnected", NULL, ATTRS("num_hidden", "20", "no_bias", "True"),
                               INPUTS(state[1], again(weights[2], 0)));

    gates = in_layer(node("elemwise_add", NULL, NO_ATTRS, INPUTS(gates, in_layer(past, layer))), layer);
  }
  gates = node("SliceChannel", NULL, ATTRS("num_outputs", "4"), INPUTS(gates));
  in = node("elemwise_mul", NULL, NO_ATTRS, INPUTS(gate(gates, 0, "sigmoid", layer), gate(gates, 1, "tanh", layer)));
  next = in_layer(in, layer);
  if (state[0]) {
    cohort_symbol *kept = node("elemwise_mul", NULL, NO_ATTRS, INPUTS(gate(gates, 2, "sigmoid", layer), state[0]));

    next = in_layer(node("elemwise_add", NULL, NO_ATTRS, INPUTS(next, in_layer(kept, layer))), layer);
  }
  state[0] = next;
  next = in_layer(node("Activation", NULL, ATTRS("act_type", "tanh"), INPUTS(again(next, 0))), layer);
  state[1] = in_layer(node("elemwise_mul", NULL, NO_ATTRS, INPUTS(gate(gates, 3, "sigmoid", layer), next)), layer);
  cohort_symbol_free(gates);
  return again(state[1], 0);
}

/* Three layers over STEPS steps of data (STEPS, BATCH, WIDTH), and a loss on all of the last layer's states. by_layer:
 * the graph lists each layer completely before the next one, otherwise step by step. */
static cohort_symbol *lstm(int by_layer) {
  static const char *const kinds[] = {"i2h_weight", "i2h_bias", "h2h_weight"};
  cohort_symbol *weights[LAYERS][3], *state[LAYERS][2] = {{NULL}}, *steps[STEPS], *data, *all, *label;
  char name[32];
  int l, t, i;

  for (l = 0; l < LAYERS; ++l)
    for (i = 0; i < 3; ++i) {
      snprintf(name, sizeof name, "%s_%s", layer_names[l], kinds[i]);
      weights[l][i] = variable(name);
    }
  data = node("SliceChannel", "steps", ATTRS("num_outputs", "6", "axis", "0", "squeeze_axis", "True"),
              INPUTS(in_layer(variable("data"), "layer0")));
  for (t = 0; t < STEPS; ++t) steps[t] = again(data, (size_t)t);
  for (l = 0; l < LAYERS; ++l) {
    for (t = 0; t < STEPS; ++t) steps[t] = cell(steps[t], weights[l], state[l], layer_names[l]);
    /* All steps of a layer before any of the next: each step of the next reads a slice of their concatenation. */
    if (!by_layer || l == LAYERS - 1) continue;
    all = node("Concat", NULL, ATTRS("dim", "0", "num_args", "6"),
               INPUTS(steps[0], steps[1], steps[2], steps[3], steps[4], steps[5]));
    all = node("SliceChannel", NULL, ATTRS("num_outputs", "6", "axis", "0"), INPUTS(in_layer(all, layer_names[l])));
    for (t = 0; t < STEPS; ++t) steps[t] = again(all, (size_t)t);
    cohort_symbol_free(all);
  }
  all = node("Concat", NULL, ATTRS("dim", "0", "num_args", "6"),
             INPUTS(steps[0], steps[1], steps[2], steps[3], steps[4], steps[5]));
  all = in_layer(all, "layer2");
  label = node("Reshape", NULL, ATTRS("shape", "(-1,)"), INPUTS(variable("label")));
  all = node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(all, in_layer(label, "layer2")));
  all = in_layer(all, "layer2");
  cohort_symbol_free(data);
  for (l = 0; l < LAYERS; ++l) {
    for (i = 0; i < 3; ++i) cohort_symbol_free(weights[l][i]);
    for (i = 0; i < 2; ++i) cohort_symbol_free(state[l][i]);
  }
  return all;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* Numbers that look random, in [-0.5, 0.5). */
static cohort_ndarray *scattered(const int64_t *shape, int32_t num_axes, uint64_t seed) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_zeros(shape, num_axes, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_fill_uniform(array, -0.5, 0.5, seed));
  return array;
}

static cohort_ndarray *labels(int which) {
  float values[STEPS * BATCH];
  int i;

  for (i = 0; i < STEPS * BATCH; ++i) values[i] = (float)((i * 7 + which) % UNITS);
  return floats(SHAPE(STEPS, BATCH), values, STEPS * BATCH);
}

static void same_numbers(const char *name, const cohort_ndarray *a, const cohort_ndarray *b) {
  static float of_a[LARGEST], of_b[LARGEST];
  int64_t size = 0, of_other = 0, i;
  int zeros = 1;

  ok(cohort_ndarray_size(a, &size));
  ok(cohort_ndarray_size(b, &of_other));
  assert_int_equal(size, of_other);
  assert_true(size > 0 && size <= LARGEST);
  ok(cohort_ndarray_read(a, of_a, (size_t)size * sizeof(float)));
  ok(cohort_ndarray_read(b, of_b, (size_t)size * sizeof(float)));
  for (i = 0; i < size; ++i) {
    zeros = zeros && of_a[i] == 0;
    if (memcmp(&of_a[i], &of_b[i], sizeof(float)) != 0)
      fail_msg("%s, element %ld: %.9g and %.9g", name, (long)i, of_a[i], of_b[i]);
  }
  if (zeros) fail_msg("%s: nothing but zeros", name);
}

static cohort_ndarray *of_executor(const cohort_executor *executor, int32_t list, size_t index) {
  cohort_ndarray *array = NULL;

  ok(cohort_executor_array(executor, list, index, &array));
  return array;
}

/* The LSTM with gradients of all arguments, weights set; layer l on cpu(l % num_devices). */
static cohort_executor *bind_executor(int by_layer, size_t num_devices) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *symbol = lstm(by_layer);
  cohort_descs *known = desc("data", SHAPE(STEPS, BATCH, WIDTH), NULL);
  cohort_context contexts[LAYERS];
  cohort_executor *executor = NULL;
  size_t num = 0, i;

  for (i = 0; i < LAYERS; ++i) contexts[i] = test_contexts()[i % num_devices];
  add_desc(known, "label", SHAPE(STEPS, BATCH), NULL);
  options.grad_req = "write";
  options.num_threads = 1;
  if (num_devices > 1) {
    options.ctx_group_names = layer_names;
    options.ctx_group_contexts = contexts;
    options.num_ctx_groups = LAYERS;
  }
  ok(cohort_executor_simple_bind(symbol, test_contexts(), known, &options, &executor));
  cohort_symbol_free(symbol);
  cohort_descs_free(known);
  ok(cohort_executor_num_arrays(executor, COHORT_EXECUTOR_ARGS, &num));
  for (i = 0; i < num; ++i) {
    cohort_ndarray *array = of_executor(executor, COHORT_EXECUTOR_ARGS, i);

    ok(cohort_ndarray_fill_uniform(array, -0.5, 0.5, 17 + i));
    cohort_ndarray_free(array);
  }
  return executor;
}

static void set_batch(cohort_executor *executor, int which) {
  cohort_arrays *inputs = named("data", scattered(SHAPE(STEPS, BATCH, WIDTH), 1000 + (uint64_t)which));

  add_named(inputs, "label", labels(which));
  ok(cohort_executor_set_inputs(executor, inputs));
  cohort_arrays_free(inputs);
}

/* Outputs, and gradients of all arguments but the label, which gets none from a loss. */
static void same_results(const cohort_executor *a, const cohort_executor *b) {
  size_t num = 0, i;
  int32_t list;

  for (list = COHORT_EXECUTOR_GRADS; list <= COHORT_EXECUTOR_OUTPUTS; ++list) {
    ok(cohort_executor_num_arrays(a, list, &num));
    for (i = 0; i < num; ++i) {
      const char *name = NULL;
      cohort_ndarray *of_a = of_executor(a, list, i), *of_b = of_executor(b, list, i);

      ok(cohort_executor_name(a, list, i, &name));
      if (strcmp(name, "label") != 0) same_numbers(name, of_a, of_b);
      cohort_ndarray_free(of_a);
      cohort_ndarray_free(of_b);
    }
  }
}

static void executors_agree(int by_layer, size_t num_devices) {
  cohort_executor *spread = bind_executor(by_layer, num_devices), *alone = bind_executor(by_layer, 1);
  int which;

  for (which = 0; which < 3; ++which) {
    set_batch(spread, which);
    set_batch(alone, which);
    ok(cohort_executor_forward(spread, 1));
    ok(cohort_executor_forward(alone, 1));
    ok(cohort_executor_backward(spread, NULL, 0, 1));
    ok(cohort_executor_backward(alone, NULL, 0, 1));
    same_results(spread, alone);
  }
  cohort_executor_free(spread);
  cohort_executor_free(alone);
}

/* Each array is on the device of the layer that reads it; outputs and gradients are those of one device. */
static void layers_on_other_devices_give_the_same_numbers(void **state) {
  cohort_executor *executor;
  cohort_ndarray *array = NULL;
  cohort_context context;

  (void)state;
  only_on_one_type();
  executor = bind_executor(0, 2);
  ok(cohort_executor_array_named(executor, COHORT_EXECUTOR_ARGS, "layer1_h2h_weight", &array));
  ok(cohort_ndarray_context(array, &context));
  assert_int_equal(context.device_id, test_contexts()[1].device_id);
  cohort_ndarray_free(array);
  ok(cohort_executor_array_named(executor, COHORT_EXECUTOR_GRADS, "layer0_i2h_weight", &array));
  ok(cohort_ndarray_context(array, &context));
  assert_int_equal(context.device_id, test_contexts()[0].device_id);
  cohort_ndarray_free(array);
  cohort_executor_free(executor);
  executors_agree(0, 2);
  executors_agree(0, 3);
  executors_agree(1, 2);
  executors_agree(1, 3);
}

/* Passes are queued one after another, with batches loaded in between and the mode changed (inference keeps nothing):
 * no device overwrites values that another one still reads. */
static void passes_in_flight_do_not_overtake_each_other(void **state) {
  cohort_executor *spread, *alone;
  int which;

  (void)state;
  only_on_one_type();
  spread = bind_executor(0, 3);
  alone = bind_executor(0, 1);
  for (which = 0; which < 200; ++which) {
    set_batch(spread, which);
    ok(cohort_executor_forward(spread, which % 3 != 0));
    if (which % 3 == 1) ok(cohort_executor_backward(spread, NULL, 0, 1));
    if (which % 50 != 49) continue;
    ok(cohort_executor_backward(spread, NULL, 0, 1));
    set_batch(alone, which);
    ok(cohort_executor_forward(alone, which % 3 != 0));
    ok(cohort_executor_backward(alone, NULL, 0, 1));
    same_results(spread, alone);
  }
  cohort_executor_free(spread);
  cohort_executor_free(alone);
}

/* Run node by node (partial forward), it gives the same. */
static void single_nodes_run_on_their_devices(void **state) {
  cohort_executor *spread, *alone;
  int32_t left = 1, step;

  (void)state;
  only_on_one_type();
  spread = bind_executor(0, 3);
  alone = bind_executor(0, 1);
  set_batch(spread, 5);
  set_batch(alone, 5);
  for (step = 0; left > 0; ++step) {
    ok(cohort_executor_partial_forward(spread, 1, step, &left));
    ok(cohort_executor_partial_forward(alone, 1, step, &left));
  }
  ok(cohort_executor_backward(spread, NULL, 0, 1));
  ok(cohort_executor_backward(alone, NULL, 0, 1));
  same_results(spread, alone);
  cohort_executor_free(spread);
  cohort_executor_free(alone);
}

/* ---- other graphs ------------------------------------------------------------------------------------------------ */

/* y = b * exp(a), then z = y + b: b is read on both devices, y crosses to the other, and a sum of both gradients
 * crosses back. */
static cohort_executor *bind_shared(cohort_ndarray *const args[2], cohort_ndarray *const grads[2], int spread) {
  static const int32_t add[] = {COHORT_GRAD_ADD, COHORT_GRAD_ADD};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *b = in_layer(variable("b"), "layer1"), *y, *z;
  cohort_executor *executor = NULL;

  y = in_layer(node("exp", "e", NO_ATTRS, INPUTS(in_layer(variable("a"), "layer0"))), "layer0");
  y = in_layer(node("elemwise_mul", "y", NO_ATTRS, INPUTS(again(b, 0), y)), "layer0");
  z = in_layer(node("elemwise_add", "z", NO_ATTRS, INPUTS(y, b)), "layer1");
  if (spread) {
    options.ctx_group_names = layer_names;
    options.ctx_group_contexts = test_contexts();
    options.num_ctx_groups = 2;
  }
  ok(cohort_executor_bind(z, test_contexts(), args, 2, grads, add, NULL, 0, &options, &executor));
  cohort_symbol_free(z);
  return executor;
}

/* Two arrays of different devices over the same memory: their devices wait for each other, and the gradients add up. */
static void arrays_over_the_same_memory_are_used_in_turn(void **state) {
  enum { NUM = 3000 };
  static float values[NUM], gradient[NUM];
  cohort_ndarray *args[2], *grads[2], *head;
  cohort_executor *executor;
  int d, i;

  (void)state;
  only_on_cpus();
  head = counted(SHAPE(NUM), 0);
  ok(cohort_ndarray_fill(head, 1));
  for (i = 0; i < NUM; ++i) {
    values[i] = 0;
    gradient[i] = 0;
  }
  for (d = 0; d < 2; ++d) {
    ok(cohort_ndarray_wrap(values, SHAPE(NUM), COHORT_DTYPE_FLOAT32, &test_contexts()[d], NULL, NULL, &args[d]));
    ok(cohort_ndarray_wrap(gradient, SHAPE(NUM), COHORT_DTYPE_FLOAT32, &test_contexts()[d], NULL, NULL, &grads[d]));
  }
  /* The arguments are in the order of the graph: b, then a. */
  {
    cohort_ndarray *const args_in_order[] = {args[1], args[0]}, *const grads_in_order[] = {grads[1], grads[0]};
    executor = bind_shared(args_in_order, grads_in_order, 1);
  }
  for (i = 0; i < 20; ++i) {
    ok(cohort_executor_forward(executor, 1));
    ok(cohort_executor_backward(executor, &head, 1, 1));
  }
  ok(cohort_executor_wait(executor));
  /* dz/da = b exp(a) = 0 and dz/db = exp(a) + 1 = 2 at a = b = 0. */
  for (i = 0; i < NUM; ++i) assert_true(gradient[i] == 40);
  cohort_executor_free(executor);
  for (d = 0; d < 2; ++d) {
    cohort_ndarray_free(args[d]);
    cohort_ndarray_free(grads[d]);
  }
  cohort_ndarray_free(head);
}

/* A step that fails on one device: the error is reported once, with the node's name, and later passes are valid
 * again. */
static void a_failure_on_one_device_comes_out_and_passes(void **state) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *e = in_layer(node("exp", "first", NO_ATTRS, INPUTS(variable("a"))), "layer0");
  cohort_symbol *s = in_layer(node("sqrt", "second", NO_ATTRS, INPUTS(e)), "layer1");
  cohort_descs *known = desc("a", SHAPE(2), NULL);
  cohort_executor *executor = NULL;
  cohort_ndarray *output;
  float values[2];

  (void)state;
  s = in_layer(node("negative", "third", NO_ATTRS, INPUTS(s)), "layer0");
  options.ctx_group_names = layer_names;
  options.ctx_group_contexts = test_contexts();
  options.num_ctx_groups = 2;
  assert_int_equal(setenv("COHORT_FAULT", "second", 1), 0);
  ok(cohort_executor_simple_bind(s, test_contexts(), known, &options, &executor));
  ok(cohort_executor_forward(executor, 0));
  output = of_executor(executor, COHORT_EXECUTOR_OUTPUTS, 0);
  fails(cohort_ndarray_read(output, values, sizeof values), COHORT_ERROR_EXECUTION, "second");
  fails(cohort_ndarray_read(output, values, sizeof values), COHORT_ERROR_EXECUTION, "not written");
  ok(cohort_executor_forward(executor, 0));
  fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "second");
  ok(cohort_executor_wait(executor));
  cohort_ndarray_free(output);
  cohort_executor_free(executor);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  ok(cohort_executor_simple_bind(s, test_contexts(), known, &options, &executor));
  ok(cohort_executor_forward(executor, 0));
  output = of_executor(executor, COHORT_EXECUTOR_OUTPUTS, 0);
  holds_free(output, -1, -1);
  cohort_executor_free(executor);
  cohort_symbol_free(s);
  cohort_descs_free(known);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* The LSTM for training on num_devices devices, each batch split over them; spread: each device's layers are on
 * contexts of their own, from `maps` on. */
static cohort_group *bind_lstm(size_t num_devices, const cohort_context *maps, size_t num_maps) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_descs *data = desc("data", SHAPE(STEPS, BATCH, WIDTH), "TNC");
  cohort_descs *label = desc("label", SHAPE(STEPS, BATCH), "TN");
  static const char *const params[] = {
      "layer0_i2h_weight", "layer0_i2h_bias",   "layer0_h2h_weight", "layer1_i2h_weight", "layer1_i2h_bias",
      "layer1_h2h_weight", "layer2_i2h_weight", "layer2_i2h_bias",   "layer2_h2h_weight", NULL};
  cohort_group *group;
  cohort_arrays *args, *aux;
  size_t num = 0, i;

  options.num_threads = 1;
  if (maps) {
    options.ctx_group_names = layer_names;
    options.ctx_group_contexts = maps;
    options.num_ctx_groups = LAYERS;
    options.contexts_per_ctx_group = num_maps;
  }
  group = bind_for_training(lstm(0), num_devices, data, label, params, &options);
  ok(cohort_group_copy_params(group, &args, &aux));
  ok(cohort_arrays_num(args, &num));
  for (i = 0; i < num; ++i) {
    cohort_ndarray *array = NULL;

    ok(cohort_arrays_get(args, i, &array));
    ok(cohort_ndarray_fill_uniform(array, -0.5, 0.5, 17 + i));
    cohort_ndarray_free(array);
  }
  ok(cohort_group_set_params(group, args, aux, 0));
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  return group;
}

static void train(cohort_group *group, const char *rule, int32_t mode) {
  static const char *const keys[] = {"learning_rate", "wd"}, *const values[] = {"0.05", "0.01"};
  cohort_optimizer *optimizer = NULL;
  int which;

  ok(cohort_optimizer_create(rule, keys, values, 2, &optimizer));
  for (which = 0; which < 12; ++which) {
    forward(group, scattered(SHAPE(STEPS, BATCH, WIDTH), 1000 + (uint64_t)which), labels(which), 1);
    backward(group, NULL);
    if (which == 7) backward(group, NULL);
    ok(cohort_group_update(group, optimizer, mode));
  }
  cohort_optimizer_free(optimizer);
}

static void groups_agree(cohort_group *a, cohort_group *b, const char *rule, int32_t mode, size_t num_devices) {
  size_t i, d;
  int32_t list;

  train(a, rule, mode);
  train(b, rule, mode);
  for (list = COHORT_GROUP_PARAMS; list <= COHORT_GROUP_GRADS; ++list)
    for (i = 0; i < num_arrays(a, list); ++i)
      for (d = 0; d < num_devices; ++d) {
        const char *name = NULL;
        cohort_ndarray *of_a = device_array(a, list, i, d), *of_b = device_array(b, list, i, d);

        ok(cohort_group_name(a, list, i, &name));
        same_numbers(name, of_a, of_b);
        cohort_ndarray_free(of_a);
        cohort_ndarray_free(of_b);
      }
  cohort_group_free(a);
  cohort_group_free(b);
}

/* Compares trained parameters and gradients for all optimizers and update modes. */
static void training_over_layers_on_other_devices_is_the_same(void **state) {
  const cohort_context layers[] = {test_contexts()[0], test_contexts()[1], test_contexts()[2]};
  int32_t mode;

  (void)state;
  only_on_one_type();
  for (mode = COHORT_UPDATE_ON_STORE; mode <= COHORT_UPDATE_NO_STORE; ++mode)
    groups_agree(bind_lstm(1, layers, 1), bind_lstm(1, NULL, 0), "adam", mode, 1);
  groups_agree(bind_lstm(1, layers, 1), bind_lstm(1, NULL, 0), "sgd", COHORT_UPDATE_ON_STORE, 1);
}

/* Both at once: two devices share each batch, and the layers of each are on contexts of its own. */
static void data_and_model_parallelism_go_together(void **state) {
  const cohort_context *const on = test_contexts(), layers[] = {on[0], on[1], on[2], on[3], on[0], on[4]};
  int32_t mode;

  (void)state;
  only_on_one_type();
  for (mode = COHORT_UPDATE_ON_STORE; mode <= COHORT_UPDATE_NO_STORE; ++mode)
    groups_agree(bind_lstm(2, layers, 2), bind_lstm(2, NULL, 0), "adam", mode, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(layers_on_other_devices_give_the_same_numbers),
      TEST(passes_in_flight_do_not_overtake_each_other),
      TEST(single_nodes_run_on_their_devices),
      TEST(arrays_over_the_same_memory_are_used_in_turn),
      TEST(a_failure_on_one_device_comes_out_and_passes),
      TEST(training_over_layers_on_other_devices_is_the_same),
      TEST(data_and_model_parallelism_go_together),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
