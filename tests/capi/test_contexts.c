/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: CTX-01 to CTX-05. The refusal of a missing GPU is tested in test_gpu. */
#include "support/group_tests.h"

static const cohort_context cpu5 = {COHORT_DEVICE_CPU, 5};

static void context_is(const cohort_ndarray *array, int32_t device_type, int32_t device_id) {
  cohort_context context = {0, 0};

  ok(cohort_ndarray_context(array, &context));
  assert_int_equal(context.device_type, device_type);
  assert_int_equal(context.device_id, device_id);
}

/* The error of binding fc on `context` over an array that lies on cpu(1). */
static cohort_error *bind_over_cpu1(const cohort_context *context) {
  static const cohort_context cpu1 = {COHORT_DEVICE_CPU, 1};
  cohort_symbol *symbol = node("relu", "r", NO_ATTRS, INPUTS(variable("data")));
  cohort_ndarray *array = NULL;
  cohort_executor *executor = NULL;
  cohort_error *error;

  ok(cohort_ndarray_zeros(SHAPE(2), COHORT_DTYPE_FLOAT32, &cpu1, &array));
  error = cohort_executor_bind(symbol, context, &array, 1, NULL, NULL, NULL, 0, NULL, &executor);
  cohort_symbol_free(symbol);
  cohort_ndarray_free(array);
  cohort_executor_free(executor);
  return error;
}

/* CTX-01: a context is a type and an id, and both count; types have MXNet's codes, and there are no others. */
static void a_context_is_a_type_and_an_id(void **state) {
  const struct {
    int32_t type;
    const char *text;
  } types[] = {{1, "cpu(7)"}, {2, "gpu(7)"}, {3, "cpu_pinned(7)"}, {5, "cpu_shared(7)"}};
  const int32_t no_types[] = {-1, 0, 4, 6};
  cohort_context context = {0, 0};
  char found[32];
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(types); ++i) {
    ok(cohort_context_parse(types[i].text, &context));
    assert_int_equal(context.device_type, types[i].type);
    assert_int_equal(context.device_id, 7);
    ok(cohort_context_text(&context, found, sizeof(found), NULL));
    assert_string_equal(found, types[i].text);
  }
  for (i = 0; i < COUNT(no_types); ++i) {
    cohort_ndarray *array = NULL;

    context.device_type = no_types[i];
    fails(cohort_ndarray_zeros(SHAPE(1), COHORT_DTYPE_FLOAT32, &context, &array), COHORT_ERROR_INVALID_ARGUMENT,
          "device type");
    assert_null(array);
  }
  context.device_type = COHORT_DEVICE_CPU;
  context.device_id = 1;
  ok(bind_over_cpu1(&context));
  context.device_id = 0;
  fails(bind_over_cpu1(&context), COHORT_ERROR_DEVICE, "cpu(0)");
  context.device_type = COHORT_DEVICE_CPU_PINNED;
  context.device_id = 1;
  fails(bind_over_cpu1(&context), COHORT_ERROR_DEVICE, "cpu_pinned(1)");
}

/* CTX-02: every cpu id from 0 is a separate device; a negative id and an unknown type are refused. */
static void every_cpu_id_is_a_device(void **state) {
  const char *const no_contexts[] = {"cpu(-1)", "tpu(0)"};
  cohort_context context = {COHORT_DEVICE_CPU, 0};
  cohort_ndarray *array = NULL;
  size_t i;

  (void)state;
  for (context.device_id = 0; context.device_id < 100; ++context.device_id) {
    ok(cohort_ndarray_full(SHAPE(1), COHORT_DTYPE_FLOAT32, &context, context.device_id, &array));
    context_is(array, COHORT_DEVICE_CPU, context.device_id);
    holds_free(array, (float)context.device_id);
  }
  array = NULL;
  context.device_id = -1;
  fails(cohort_ndarray_zeros(SHAPE(1), COHORT_DTYPE_FLOAT32, &context, &array), COHORT_ERROR_INVALID_ARGUMENT, "-1");
  assert_null(array);
  for (i = 0; i < COUNT(no_contexts); ++i)
    fails(cohort_context_parse(no_contexts[i], &context), COHORT_ERROR_INVALID_ARGUMENT, no_contexts[i]);
}

/* CTX-03: without a context, cpu(0). */
static void the_default_context_is_cpu_0(void **state) {
  cohort_symbol *symbol = node("relu", "r", NO_ATTRS, INPUTS(variable("data")));
  cohort_descs *known = desc("data", SHAPE(2), NULL);
  cohort_executor *executor = NULL;
  cohort_context context = {0, 77};
  cohort_ndarray *array = NULL;

  (void)state;
  ok(cohort_ndarray_zeros(SHAPE(1), COHORT_DTYPE_FLOAT32, NULL, &array));
  context_is(array, COHORT_DEVICE_CPU, 0);
  cohort_ndarray_free(array);
  ok(cohort_executor_simple_bind(symbol, NULL, known, NULL, &executor));
  ok(cohort_executor_context(executor, &context));
  assert_int_equal(context.device_type, COHORT_DEVICE_CPU);
  assert_int_equal(context.device_id, 0);
  cohort_executor_free(executor);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

/* relu over rows of two on these contexts, for training. */
static cohort_error *bind_on(const cohort_context *contexts, size_t num_contexts, cohort_group **out_group) {
  cohort_symbol *symbol = linear("1");
  cohort_descs *data = desc("data", SHAPE(4, 2), NULL);
  const char *const param = "fc_weight";
  cohort_error *error = cohort_group_create(symbol, contexts, num_contexts, data, NULL, &param, 1, 1, NULL, out_group);

  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  return error;
}

/* CTX-04: the caller's order of contexts is the order of the devices everywhere. */
static void devices_have_the_order_of_the_contexts(void **state) {
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 3}, {COHORT_DEVICE_CPU, 1}};
  const int32_t lists[] = {COHORT_GROUP_DATA, COHORT_GROUP_PARAMS, COHORT_GROUP_GRADS, COHORT_GROUP_OUTPUTS};
  cohort_group *group = NULL;
  cohort_ndarray *array;
  size_t num = 0, i, d;

  (void)state;
  ok(bind_on(contexts, 2, &group));
  ok(cohort_group_num_contexts(group, &num));
  assert_int_equal(num, 2);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  for (d = 0; d < 2; ++d) {
    cohort_context context = {0, 0};
    cohort_executor *executor = NULL;

    ok(cohort_group_context(group, d, &context));
    assert_int_equal(context.device_id, contexts[d].device_id);
    ok(cohort_group_executor(group, d, &executor));
    ok(cohort_executor_context(executor, &context));
    assert_int_equal(context.device_id, contexts[d].device_id);
    cohort_executor_free(executor);
    for (i = 0; i < COUNT(lists); ++i) {
      array = device_array(group, lists[i], 0, d);
      context_is(array, COHORT_DEVICE_CPU, contexts[d].device_id);
      cohort_ndarray_free(array);
    }
  }
  array = merged(group, COHORT_GROUP_OUTPUTS, 0);
  context_is(array, COHORT_DEVICE_CPU, 3);
  cohort_ndarray_free(array);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 1, 2, 3);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 1), 4, 5, 6, 7);
  cohort_group_free(group);
}

/* CTX-04: at least one context is required; the same one twice makes two executors, each with its own arrays. */
static void the_same_context_twice_makes_two_devices(void **state) {
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 2}, {COHORT_DEVICE_CPU, 2}};
  cohort_group *group = NULL;

  (void)state;
  fails(bind_on(contexts, 0, &group), COHORT_ERROR_INVALID_ARGUMENT, "contexts");
  assert_null(group);
  ok(bind_on(contexts, 2, &group));
  fill(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 1);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 0, 0);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 0, 9, 13);
  cohort_group_free(group);
}

/* A copy on cpu(5); frees the array. */
static cohort_ndarray *moved(cohort_ndarray *array) {
  cohort_ndarray *copy = NULL;

  ok(cohort_ndarray_copy(array, &cpu5, &copy));
  cohort_ndarray_free(array);
  context_is(copy, COHORT_DEVICE_CPU, 5);
  return copy;
}

/* CTX-05: batches, labels, parameters, head gradients and states may lie on any context. */
static void arrays_may_lie_on_any_context(void **state) {
  const char *const state_names[] = {"memory"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_metric *metric = NULL;
  cohort_ndarray *label, *states[2];
  double sum = 0, num = 0;

  (void)state;
  set_param(group, "fc_weight", moved(floats(SHAPE(1, 2), FLOATS(2, 20))));
  forward(group, moved(counted(SHAPE(4, 2), 1)), moved(counted(SHAPE(4, 1), 1)), 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 20, 64, 108, 152);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 126, 209);
  label = moved(counted(SHAPE(4, 1), 1));
  ok(cohort_metric_create("mae", NULL, NULL, 0, &metric));
  ok(cohort_group_update_metric(group, metric, &label, 1));
  ok(cohort_metric_counters(metric, 0, 0, &sum, &num));
  assert_true(num == 2);
  assert_true(sum == 41.5 + 127.5);
  cohort_metric_free(metric);
  cohort_ndarray_free(label);
  cohort_group_free(group);

  options.state_names = state_names;
  options.num_state_names = 1;
  options.inputs_need_grad = 1;
  group = bind_for_training(node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("memory"))), 2,
                            desc("data", SHAPE(2, 1), NULL), NULL, NO_NAMES, &options);
  states[0] = moved(floats(SHAPE(1, 1), FLOATS(10)));
  states[1] = moved(floats(SHAPE(1, 1), FLOATS(20)));
  ok(cohort_group_set_states(group, states, 1, 2, NULL));
  cohort_ndarray_free(states[0]);
  cohort_ndarray_free(states[1]);
  forward(group, moved(counted(SHAPE(2, 1), 1)), NULL, 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 21);
  backward(group, moved(floats(SHAPE(2, 1), FLOATS(3, 4))));
  holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), 3, 4);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_context_is_a_type_and_an_id),
      TEST(every_cpu_id_is_a_device),
      TEST(the_default_context_is_cpu_0),
      TEST(devices_have_the_order_of_the_contexts),
      TEST(the_same_context_twice_makes_two_devices),
      TEST(arrays_may_lie_on_any_context),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
