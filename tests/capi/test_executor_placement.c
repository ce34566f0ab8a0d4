/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a network on different contexts by `__ctx_group__`: executors (EXE-10, EXE-12, EXE-32), groups (EXE-11). */
#include "support/executor_tests.h"

static const char *const groups[] = {"lower", "upper"};
static const cohort_context places[] = {{COHORT_DEVICE_CPU, 1}, {COHORT_DEVICE_CPU, 2}};

/* tanh(data . lower_weight^T) in group "lower"; its product with upper_weight, normalised, in "upper". */
static cohort_symbol *two_parts(void) {
  cohort_symbol *lower =
      node("FullyConnected", "lower", ATTRS("num_hidden", "3", "no_bias", "1", "__ctx_group__", "lower"),
           INPUTS(variable("data")));
  cohort_symbol *bent = node("Activation", "bent", ATTRS("act_type", "tanh"), INPUTS(lower)); /* no group of its own */
  cohort_symbol *upper =
      node("FullyConnected", "upper", ATTRS("num_hidden", "2", "no_bias", "1", "__ctx_group__", "upper"), INPUTS(bent));

  return node("BatchNorm", "norm", ATTRS("fix_gamma", "False", "__ctx_group__", "upper"), INPUTS(upper));
}

static cohort_executor_options placed_options(void) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.ctx_group_names = groups;
  options.ctx_group_contexts = places;
  options.num_ctx_groups = 2;
  options.grad_req = "write";
  return options;
}

static void set_two_parts(const cohort_executor *executor) {
  set_arg(executor, "data", 1, 2, -1, 0.5f, 3, 1, -2, 0);
  set_arg(executor, "lower_weight", 0.1f, -0.2f, 0.3f, 0.1f, 0.5f, -0.4f);
  set_arg(executor, "upper_weight", 1, -1, 0.5f, 0.25f, 2, -0.5f);
  set_arg(executor, "norm_gamma", 1.5f, 0.5f);
  set_arg(executor, "norm_beta", 0.25f, -1);
}

static void one_pass(cohort_executor *executor) {
  ok(cohort_executor_forward(executor, 1));
  ok(try_backward_with(executor, floats(SHAPE(4, 2), FLOATS(1, -2, 3, 0.5f, -1, 1, 0.25f, 2)), 1));
}

/* Checks that both arrays hold the same bytes; frees both handles. */
static void same_bytes(cohort_ndarray *one, cohort_ndarray *other) {
  char first[256], second[256];
  size_t bytes = 0;

  ok(cohort_ndarray_bytes(one, &bytes));
  assert_true(bytes <= sizeof(first));
  ok(cohort_ndarray_read(one, first, bytes));
  ok(cohort_ndarray_read(other, second, bytes));
  assert_memory_equal(first, second, bytes);
  cohort_ndarray_free(one);
  cohort_ndarray_free(other);
}

static void same_results(const cohort_executor *one, const cohort_executor *other) {
  static const char *const args[] = {"data", "lower_weight", "upper_weight", "norm_gamma", "norm_beta"};
  size_t i;

  same_bytes(output_of(one, 0), output_of(other, 0));
  for (i = 0; i < COUNT(args); ++i) same_bytes(grad_of(one, args[i]), grad_of(other, args[i]));
  same_bytes(aux_of(one, "norm_moving_mean"), aux_of(other, "norm_moving_mean"));
}

/* EXE-10: spread over two contexts, a network gives what it gives on one, bit by bit, forward and backward. */
static void parts_on_two_contexts_give_what_one_gives(void **state) {
  const cohort_executor_options options = placed_options();
  cohort_executor *whole = simple_bind_with(two_parts(), desc("data", SHAPE(4, 2), NULL), "write");
  cohort_executor *spread = simple_bind(two_parts(), desc("data", SHAPE(4, 2), NULL), &options);
  int round;

  (void)state;
  set_two_parts(whole);
  set_two_parts(spread);
  for (round = 0; round < 3; ++round) {
    one_pass(whole);
    one_pass(spread);
    same_results(whole, spread);
  }
  cohort_executor_free(whole);
  cohort_executor_free(spread);
}

/* EXE-10, EXE-12: an argument, its gradient and an auxiliary state are on the context of their group. A variable
 * without a group is on that of its reader, a node without one on that of its inputs, an output on that of its node. */
static void arrays_are_where_their_group_is(void **state) {
  static const struct {
    int32_t list;
    const char *name;
    int32_t cpu;
  } expected[] = {{COHORT_EXECUTOR_ARGS, "data", 1},
                  {COHORT_EXECUTOR_GRADS, "data", 1},
                  {COHORT_EXECUTOR_ARGS, "lower_weight", 1},
                  {COHORT_EXECUTOR_GRADS, "lower_weight", 1},
                  {COHORT_EXECUTOR_ARGS, "upper_weight", 2},
                  {COHORT_EXECUTOR_GRADS, "upper_weight", 2},
                  {COHORT_EXECUTOR_AUX, "norm_moving_mean", 2},
                  {COHORT_EXECUTOR_OUTPUTS, "norm_output", 2}};
  const cohort_executor_options options = placed_options();
  cohort_executor *executor = simple_bind(two_parts(), desc("data", SHAPE(4, 2), NULL), &options);
  cohort_symbol *parts[2], *heads = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(expected); ++i)
    is_on_cpu(array_of(executor, expected[i].list, expected[i].name), expected[i].cpu);
  cohort_executor_free(executor);
  parts[0] = node("Activation", "bent", ATTRS("act_type", "relu"),
                  INPUTS(node("FullyConnected", "fc", ATTRS("num_hidden", "1", "__ctx_group__", "upper"),
                              INPUTS(variable("data")))));
  parts[1] = node("Activation", "apart", ATTRS("act_type", "relu"), INPUTS(variable("other")));
  ok(cohort_symbol_group(parts, 2, &heads));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  {
    cohort_descs *known = desc("data", SHAPE(4, 2), NULL);

    add_desc(known, "other", SHAPE(3), NULL);
    executor = simple_bind(heads, known, &options);
  }
  is_on_cpu(array_of(executor, COHORT_EXECUTOR_OUTPUTS, "bent_output"), 2);  /* like its input */
  is_on_cpu(array_of(executor, COHORT_EXECUTOR_OUTPUTS, "apart_output"), 0); /* no input: the default */
  is_on_cpu(arg_of(executor, "other"), 0);
  cohort_executor_free(executor);
}

/* EXE-10: without a map the attribute is not read; with one, a group that is not in it is an error that names it. */
static void groups_are_read_with_a_map_only(void **state) {
  cohort_executor_options options = placed_options();
  cohort_executor *executor = simple_bind_with(two_parts(), desc("data", SHAPE(4, 2), NULL), NULL), *refused = NULL;
  cohort_error *error;

  (void)state;
  is_on_cpu(arg_of(executor, "upper_weight"), 0);
  is_on_cpu(output_of(executor, 0), 0);
  cohort_executor_free(executor);
  options.num_ctx_groups = 1;
  error = try_simple_bind(&refused, two_parts(), desc("data", SHAPE(4, 2), NULL), &options);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_DEVICE);
  assert_non_null(strstr(cohort_error_message(error), "group 'upper'"));
  cohort_error_free(error);
  assert_null(refused);
}

/* How many steps of the plan copy between contexts, forward and backward. */
typedef struct copies {
  int forward, backward;
} copies;

static void count_copies(int32_t level, const char *message, void *user_data) {
  copies *count = user_data;

  (void)level;
  if (!strstr(message, "_CrossDeviceCopy")) return;
  count->forward += strstr(message, "plan: forward") != NULL;
  count->backward += strstr(message, "plan: backward") != NULL;
}

/* EXE-10: a step of the plan copies a value that another context reads, in backward too. */
static void values_are_copied_between_contexts(void **state) {
  const cohort_executor_options options = placed_options();
  copies apart = {0, 0}, together = {0, 0};

  (void)state;
  assert_int_equal(setenv("COHORT_TRACE", "plan", 1), 0);
  ok(cohort_set_log(COHORT_LOG_DEBUG, count_copies, &apart));
  cohort_executor_free(simple_bind(two_parts(), desc("data", SHAPE(4, 2), NULL), &options));
  ok(cohort_set_log(COHORT_LOG_DEBUG, count_copies, &together));
  cohort_executor_free(simple_bind_with(two_parts(), desc("data", SHAPE(4, 2), NULL), "write"));
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  assert_int_equal(unsetenv("COHORT_TRACE"), 0);
  assert_int_equal(apart.forward, 1);  /* bent_output, from lower to upper */
  assert_int_equal(apart.backward, 1); /* its gradient, back */
  assert_int_equal(together.forward + together.backward, 0);
}

/* EXE-10, EXE-27, EXE-32: a reshape keeps the placement, or places nodes by a map of its own, as long as the arrays
 * stay where they are. */
static void a_reshape_keeps_the_placement(void **state) {
  const cohort_executor_options options = placed_options();
  const cohort_context elsewhere[] = {{COHORT_DEVICE_CPU, 1}, {COHORT_DEVICE_CPU, 5}};
  cohort_reshape_options how = COHORT_RESHAPE_OPTIONS_INIT;
  cohort_executor *executor = simple_bind(two_parts(), desc("data", SHAPE(4, 2), NULL), &options);
  cohort_executor *smaller = NULL, *whole = simple_bind_with(two_parts(), desc("data", SHAPE(2, 2), NULL), NULL);

  (void)state;
  set_two_parts(executor);
  ok(try_reshape(&smaller, executor, desc("data", SHAPE(2, 2), NULL), NULL));
  is_on_cpu(arg_of(smaller, "upper_weight"), 2);
  is_on_cpu(arg_of(smaller, "data"), 1);
  is_on_cpu(output_of(smaller, 0), 2);
  set_arg(whole, "data", 1, 2, -1, 0.5f);
  set_arg(whole, "lower_weight", 0.1f, -0.2f, 0.3f, 0.1f, 0.5f, -0.4f);
  set_arg(whole, "upper_weight", 1, -1, 0.5f, 0.25f, 2, -0.5f);
  set_arg(whole, "norm_gamma", 1.5f, 0.5f);
  set_arg(whole, "norm_beta", 0.25f, -1);
  ok(cohort_executor_forward(smaller, 1));
  ok(cohort_executor_forward(whole, 1));
  same_bytes(output_of(smaller, 0), output_of(whole, 0));
  cohort_executor_free(smaller);
  smaller = NULL;
  how.ctx_group_names = groups;
  how.ctx_group_contexts = places;
  how.num_ctx_groups = 2;
  ok(try_reshape(&smaller, executor, desc("data", SHAPE(2, 2), NULL), &how)); /* the same map, given again */
  is_on_cpu(arg_of(smaller, "upper_weight"), 2);
  cohort_executor_free(smaller);
  smaller = NULL;
  how.ctx_group_contexts = elsewhere; /* upper_weight is on cpu(2), and is shared */
  fails(try_reshape(&smaller, executor, desc("data", SHAPE(2, 2), NULL), &how), COHORT_ERROR_DEVICE, "cpu(5)");
  how.num_ctx_groups = 1; /* a node's group without a context */
  fails(try_reshape(&smaller, executor, desc("data", SHAPE(2, 2), NULL), &how), COHORT_ERROR_DEVICE, "'upper'");
  assert_null(smaller);
  cohort_executor_free(executor);
  cohort_executor_free(whole);
}

/* EXE-32: nodes that no array holds may move to another context in a reshape. */
static void a_reshape_may_move_nodes(void **state) {
  const char *const lower = "lower";
  const cohort_context before = {COHORT_DEVICE_CPU, 1}, after = {COHORT_DEVICE_CPU, 3};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_reshape_options how = COHORT_RESHAPE_OPTIONS_INIT;
  cohort_symbol *symbol = node("_plus_scalar", "above", ATTRS("scalar", "1", "__ctx_group__", "lower"),
                               INPUTS(node("_mul_scalar", "below", ATTRS("scalar", "2"), INPUTS(variable("x")))));
  cohort_executor *executor, *moved = NULL;

  (void)state;
  options.ctx_group_names = &lower;
  options.ctx_group_contexts = &before;
  options.num_ctx_groups = 1;
  executor = simple_bind(symbol, desc("x", SHAPE(3), NULL), &options);
  set_arg(executor, "x", 1, 2, 3);
  is_on_cpu(output_of(executor, 0), 1);
  how.ctx_group_names = &lower;
  how.ctx_group_contexts = &after;
  how.num_ctx_groups = 1;
  ok(try_reshape(&moved, executor, desc("x", SHAPE(3), NULL), &how));
  is_on_cpu(output_of(moved, 0), 3);
  is_on_cpu(arg_of(moved, "x"), 0);
  ok(cohort_executor_forward(moved, 0));
  holds_free(output_of(moved, 0), 3, 5, 7);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 3, 5, 7);
  cohort_executor_free(executor);
  cohort_executor_free(moved);
}

/* EXE-12: single arguments and auxiliary states may be given contexts of their own beside the groups; nodes without a
 * group follow them. Gradients are on the context of their argument. Without groups everything is on the default
 * context (EXE-06). */
static void single_arrays_may_be_given_contexts(void **state) {
  const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0}, cpu1 = {COHORT_DEVICE_CPU, 1}, cpu4 = {COHORT_DEVICE_CPU, 4};
  const cohort_context args[] = {cpu4, cpu1}, defaults[] = {cpu0, cpu0};
  const char *const lower = "lower";
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;

  (void)state;
  options.grad_req = "write";
  options.ctx_group_names = &lower;
  options.ctx_group_contexts = &cpu1;
  options.num_ctx_groups = 1;
  options.arg_contexts = args;
  executor = simple_bind(node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "1", "ctx_group", "lower"),
                              INPUTS(variable("data"))),
                         desc("data", SHAPE(2, 2), NULL), &options);
  is_on_cpu(arg_of(executor, "data"), 4);
  is_on_cpu(grad_of(executor, "data"), 4);
  is_on_cpu(output_of(executor, 0), 1);
  set_arg(executor, "data", 1, 2, 3, 4);
  set_arg(executor, "fc_weight", 1, 10);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 21, 43);
  ok(try_backward_with(executor, floats(SHAPE(2, 1), FLOATS(1, 2)), 1));
  holds_free(grad_of(executor, "data"), 1, 10, 2, 20);
  holds_free(grad_of(executor, "fc_weight"), 7, 10);
  cohort_executor_free(executor);
  executor = NULL;
  options.grad_contexts = defaults;
  fails(try_simple_bind(&executor, linear("1"), desc("data", SHAPE(2, 2), NULL), &options), COHORT_ERROR_UNSUPPORTED,
        "gradient of 'data': expected cpu(4), the context of the argument, found cpu(0)");
  options.grad_contexts = NULL;
  options.num_ctx_groups = 0;
  fails(try_simple_bind(&executor, linear("1"), desc("data", SHAPE(2, 2), NULL), &options), COHORT_ERROR_DEVICE,
        "'data' is on cpu(4), expected cpu(0)");
  assert_null(executor);
}

/* EXE-10: an auxiliary state is updated on the context of its node. It is refused if its own group, its own context or
 * its array put it elsewhere. */
static void auxiliary_states_are_where_their_node_is(void **state) {
  const cohort_context cpu2 = {COHORT_DEVICE_CPU, 2}, aux[] = {cpu2, cpu2};
  cohort_executor_options options = placed_options();
  cohort_executor *executor = NULL;
  cohort_symbol *symbol;
  cohort_ndarray *args[3], *states[2];
  size_t i;

  (void)state;
  fails(try_simple_bind(&executor,
                        node("BatchNorm", "bn", ATTRS("__ctx_group__", "lower"),
                             INPUTS(variable("x"), variable("g"), variable("b"),
                                    variable_with("m", "__ctx_group__", "upper"), variable("v"))),
                        desc("x", SHAPE(2, 1), NULL), &options),
        COHORT_ERROR_DEVICE, "auxiliary state 'm' is on cpu(2), expected cpu(1)");
  symbol = node("BatchNorm", "bn", ATTRS("__ctx_group__", "lower"),
                INPUTS(variable("x"), variable("g"), variable("b"), variable("m"), variable("v")));
  options.aux_contexts = aux;
  {
    cohort_descs *known = desc("x", SHAPE(2, 1), NULL);

    fails(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor), COHORT_ERROR_DEVICE,
          "auxiliary state 'm' is on cpu(2), expected cpu(1)");
    options.aux_contexts = NULL;
    ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor));
    cohort_descs_free(known);
  }
  is_on_cpu(aux_of(executor, "m"), 1);
  cohort_executor_free(executor);
  executor = NULL;
  ok(cohort_ndarray_zeros(SHAPE(2, 1), COHORT_DTYPE_FLOAT32, &places[0], &args[0]));
  for (i = 1; i < 3; ++i) ok(cohort_ndarray_zeros(SHAPE(1), COHORT_DTYPE_FLOAT32, &places[0], &args[i]));
  for (i = 0; i < 2; ++i) ok(cohort_ndarray_zeros(SHAPE(1), COHORT_DTYPE_FLOAT32, &places[i], &states[i]));
  fails(cohort_executor_bind(symbol, NULL, args, 3, NULL, NULL, states, 2, &options, &executor), COHORT_ERROR_DEVICE,
        "auxiliary state 'v' is on cpu(2), expected cpu(1)");
  assert_null(executor);
  for (i = 0; i < 3; ++i) cohort_ndarray_free(args[i]);
  for (i = 0; i < 2; ++i) cohort_ndarray_free(states[i]);
  cohort_symbol_free(symbol);
}

/* EXE-10: given arrays place the nodes that have no group; arrays that contradict a group are refused. */
static void given_arrays_place_nodes(void **state) {
  const cohort_context cpu4 = {COHORT_DEVICE_CPU, 4};
  const char *const lower = "lower";
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *symbol = node("_mul_scalar", "twice", ATTRS("scalar", "2"), INPUTS(variable("x")));
  cohort_symbol *grouped = node("Flatten", "flat", NO_ATTRS, INPUTS(variable_with("x", "__ctx_group__", "lower")));
  cohort_ndarray *x = floats(SHAPE(2, 1), FLOATS(1, 2)), *there = NULL;
  cohort_executor *executor = NULL;

  (void)state;
  options.ctx_group_names = &lower;
  options.ctx_group_contexts = places;
  options.num_ctx_groups = 1;
  ok(cohort_ndarray_copy(x, &cpu4, &there));
  ok(cohort_executor_bind(symbol, NULL, &there, 1, NULL, NULL, NULL, 0, &options, &executor));
  is_on_cpu(output_of(executor, 0), 4);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 2, 4);
  cohort_executor_free(executor);
  executor = NULL;
  fails(cohort_executor_bind(grouped, NULL, &there, 1, NULL, NULL, NULL, 0, &options, &executor), COHORT_ERROR_DEVICE,
        "'x' is on cpu(4), expected cpu(1)");
  fails(cohort_executor_bind(symbol, NULL, &there, 1, NULL, NULL, NULL, 0, NULL, &executor), COHORT_ERROR_DEVICE,
        "'x' is on cpu(4), expected cpu(0)");
  assert_null(executor);
  cohort_ndarray_free(x);
  cohort_ndarray_free(there);
  cohort_symbol_free(symbol);
  cohort_symbol_free(grouped);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static cohort_error *try_group(cohort_group **out_group, const cohort_context *contexts, size_t per_group,
                               size_t num_groups) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  options.ctx_group_names = groups;
  options.ctx_group_contexts = contexts;
  options.num_ctx_groups = num_groups;
  options.contexts_per_ctx_group = per_group;
  return try_bind(out_group, two_parts(), 2, desc("data", SHAPE(4, 2), NULL), NULL,
                  NAMES("lower_weight", "upper_weight"), &options);
}

static void weights_are_on(const cohort_group *group, size_t device, int32_t lower, int32_t upper) {
  is_on_cpu(device_array(group, COHORT_GROUP_PARAMS, 0, device), lower);
  is_on_cpu(device_array(group, COHORT_GROUP_PARAMS, 1, device), upper);
}

/* EXE-11: a group takes no map, one for all devices, or one for each; other numbers are refused. */
static void groups_take_a_map_for_all_devices_or_one_for_each(void **state) {
  const cohort_context cpus[] = {{1, 2}, {1, 3}, {1, 4}, {1, 5}}, gap[] = {{1, 2}, {1, 3}, {1, 4}, {0, 0}};
  cohort_group *group = NULL;

  (void)state;
  ok(try_group(&group, NULL, 0, 0)); /* none: the attribute is not read */
  weights_are_on(group, 0, 0, 0);
  weights_are_on(group, 1, 1, 1);
  cohort_group_free(group);
  ok(try_group(&group, cpus, 1, 2)); /* the same on both devices */
  weights_are_on(group, 0, 2, 3);
  weights_are_on(group, 1, 2, 3);
  cohort_group_free(group);
  ok(try_group(&group, cpus, 2, 2)); /* for each name, a context for each device */
  weights_are_on(group, 0, 2, 4);
  weights_are_on(group, 1, 3, 5);
  cohort_group_free(group);
  group = NULL;
  fails(try_group(&group, gap, 2, 2), COHORT_ERROR_DEVICE, "'upper'"); /* the second device's map lacks it */
  fails(try_group(&group, cpus, 3, 1), COHORT_ERROR_INVALID_ARGUMENT, "expected 1 or 2, found 3");
  assert_null(group);
}

/* EXE-11: a batch over two devices, each of them spread over two contexts, gives the same as over two plain devices. */
static void a_placed_group_trains_as_another(void **state) {
  const cohort_context cpus[] = {{1, 2}, {1, 3}, {1, 4}, {1, 5}};
  cohort_group *spread = NULL, *whole = NULL;
  cohort_group *both[2];
  size_t i;

  (void)state;
  ok(try_group(&spread, cpus, 2, 2));
  ok(try_group(&whole, NULL, 0, 0));
  both[0] = spread;
  both[1] = whole;
  for (i = 0; i < 2; ++i) {
    set_param(both[i], "lower_weight", floats(SHAPE(3, 2), FLOATS(0.1f, -0.2f, 0.3f, 0.1f, 0.5f, -0.4f)));
    set_param(both[i], "upper_weight", floats(SHAPE(2, 3), FLOATS(1, -1, 0.5f, 0.25f, 2, -0.5f)));
    forward(both[i], floats(SHAPE(4, 2), FLOATS(1, 2, -1, 0.5f, 3, 1, -2, 0)), NULL, 1);
    backward(both[i], floats(SHAPE(4, 2), FLOATS(1, -2, 3, 0.5f, -1, 1, 0.25f, 2)));
  }
  same_bytes(merged(spread, COHORT_GROUP_OUTPUTS, 0), merged(whole, COHORT_GROUP_OUTPUTS, 0));
  for (i = 0; i < 2; ++i) {
    same_bytes(device_array(spread, COHORT_GROUP_GRADS, i, 0), device_array(whole, COHORT_GROUP_GRADS, i, 0));
    same_bytes(device_array(spread, COHORT_GROUP_GRADS, i, 1), device_array(whole, COHORT_GROUP_GRADS, i, 1));
  }
  cohort_group_free(spread);
  cohort_group_free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(parts_on_two_contexts_give_what_one_gives),
      TEST(arrays_are_where_their_group_is),
      TEST(groups_are_read_with_a_map_only),
      TEST(values_are_copied_between_contexts),
      TEST(a_reshape_keeps_the_placement),
      TEST(a_reshape_may_move_nodes),
      TEST(single_arrays_may_be_given_contexts),
      TEST(auxiliary_states_are_where_their_node_is),
      TEST(given_arrays_place_nodes),
      TEST(groups_take_a_map_for_all_devices_or_one_for_each),
      TEST(a_placed_group_trains_as_another),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
