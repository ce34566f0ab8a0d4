/* SPDX-License-Identifier: Apache-2.0 */
/* States: STA-01 to STA-06. */
#include "support/group_tests.h"

static const char *const state_names[] = {"memory"};

/* out = data + memory, both of a batch of rows of two; memory is a state. */
static cohort_error *try_bind_memory(cohort_group **out_group, const char *const *states, size_t num_states) {
  cohort_symbol *symbol = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("memory")));
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  options.state_names = states;
  options.num_state_names = num_states;
  return try_bind(out_group, symbol, 2, desc("data", SHAPE(3, 2), NULL), NULL, NO_NAMES, &options);
}

static cohort_group *bind_memory(void) {
  cohort_group *group = NULL;

  ok(try_bind_memory(&group, state_names, 1));
  return group;
}

static void fill_states(cohort_group *group, double value) { ok(cohort_group_set_states(group, NULL, 0, 0, &value)); }

/* STA-01: a state has its device's shape, starts at zero and has no gradient. */
static void a_state_starts_at_zero_without_gradient(void **state) {
  cohort_group *group = bind_memory();
  cohort_executor *executor = NULL;
  cohort_ndarray *memory, *grad = NULL;

  (void)state;
  assert_int_equal(num_arrays(group, COHORT_GROUP_STATES), 1);
  memory = device_array(group, COHORT_GROUP_STATES, 0, 0);
  has_shape(memory, 2, 2);
  holds_free(memory, 0, 0, 0, 0);
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_executor_array_named(executor, COHORT_EXECUTOR_GRADS, "memory", &grad));
  assert_null(grad);
  cohort_executor_free(executor);
  cohort_group_free(group);
}

/* STA-01: a state is in the pool of inputs, like data. */
static void a_state_is_pooled(void **state) {
  cohort_group *group = bind_memory();
  cohort_arrays *pool = NULL;
  cohort_ndarray *pooled = NULL;
  size_t index = 99;

  (void)state;
  ok(cohort_group_shared_data(group, 1, &pool));
  ok(cohort_arrays_find(pool, "memory", &index));
  ok(cohort_arrays_get(pool, index, &pooled));
  fill_states(group, 4);
  holds_free(pooled, 4, 4);
  cohort_arrays_free(pool);
  cohort_group_free(group);
}

/* STA-03: of several states, all devices of the first come first. The output is first + 10 * second. */
static void states_come_one_after_the_other(void **state) {
  const char *const names[] = {"second", "first"};
  cohort_symbol *symbol = node("_plus_scalar", "no", ATTRS("scalar", "0"), INPUTS(variable("data")));
  cohort_symbol *ten = node("_mul_scalar", "ten", ATTRS("scalar", "10"), INPUTS(variable("second")));
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *states[4];
  cohort_group *group;
  size_t i;

  (void)state;
  symbol = node("elemwise_add", "one", NO_ATTRS, INPUTS(symbol, variable("first")));
  symbol = node("elemwise_add", "both", NO_ATTRS, INPUTS(symbol, ten));
  options.state_names = names;
  options.num_state_names = 2;
  group = bind_for_training(symbol, 2, desc("data", SHAPE(2, 1), NULL), NULL, NO_NAMES, &options);
  for (i = 0; i < 4; ++i) states[i] = floats(SHAPE(1, 1), FLOATS((float)i + 1)); /* second: 1, 2; first: 3, 4 */
  ok(cohort_group_set_states(group, states, 2, 2, NULL));
  forward(group, counted(SHAPE(2, 1), 0), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 13, 24);
  fails(cohort_group_set_states(group, states, 1, 2, NULL), COHORT_ERROR_INVALID_ARGUMENT, "2 states, found 1");
  for (i = 0; i < 4; ++i) cohort_ndarray_free(states[i]);
  cohort_group_free(group);
}

/* STA-01: a state is an argument. */
static void a_state_is_an_argument(void **state) {
  const char *const unknown[] = {"memory", "no_such"};
  cohort_group *group = NULL;

  (void)state;
  fails(try_bind_memory(&group, unknown, 2), COHORT_ERROR_NAME, "no_such");
  assert_null(group);
}

/* STA-02: the devices' arrays are live; there is no merged form. */
static void states_are_live_and_never_merged(void **state) {
  cohort_group *group = bind_memory();
  cohort_ndarray *array = NULL;

  (void)state;
  fill(device_array(group, COHORT_GROUP_STATES, 0, 1), 100);
  forward(group, counted(SHAPE(3, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 1, 2, 3, 104, 105);
  fails(cohort_group_merged(group, COHORT_GROUP_STATES, 0, &array), COHORT_ERROR_UNSUPPORTED, "state");
  assert_null(array);
  cohort_group_free(group);
}

/* STA-03: one array for each state and device, converted; its purpose is to feed outputs back. */
static void states_are_set_by_device(void **state) {
  const int32_t numbers[] = {1, 2, 3, 4};
  cohort_group *group = bind_memory();
  cohort_ndarray *states[2] = {NULL, NULL};

  (void)state;
  ok(cohort_ndarray_from_host(numbers, sizeof(numbers), SHAPE(2, 2), COHORT_DTYPE_INT32, NULL, &states[0]));
  states[1] = floats(SHAPE(1, 2), FLOATS(5, 6));
  ok(cohort_group_set_states(group, states, 1, 2, NULL));
  cohort_ndarray_free(states[0]);
  cohort_ndarray_free(states[1]);
  forward(group, counted(SHAPE(3, 2), 0), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 1, 2, 3, 4, 5, 6);

  states[0] = device_array(group, COHORT_GROUP_OUTPUTS, 0, 0);
  states[1] = device_array(group, COHORT_GROUP_OUTPUTS, 0, 1);
  forward(group, counted(SHAPE(3, 2), 10), NULL, 0);
  ok(cohort_group_set_states(group, states, 1, 2, NULL));
  cohort_ndarray_free(states[0]);
  cohort_ndarray_free(states[1]);
  forward(group, counted(SHAPE(3, 2), 0), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 1, 12, 23, 34, 45, 56);
  cohort_group_free(group);
}

/* STA-03, STA-05: refused, with nothing set, are wrong counts and shapes, both forms together, and neither. */
static void wrong_states_are_refused(void **state) {
  cohort_group *group = bind_memory();
  cohort_ndarray *states[4];
  const double value = 3;
  size_t i;

  (void)state;
  fill_states(group, 7);
  for (i = 0; i < COUNT(states); ++i) states[i] = counted(SHAPE(2, 2), 1);
  fails(cohort_group_set_states(group, states, 1, 2, NULL), COHORT_ERROR_SHAPE, "memory");
  fails(cohort_group_set_states(group, states, 1, 1, NULL), COHORT_ERROR_INVALID_ARGUMENT, "1");
  fails(cohort_group_set_states(group, states, 2, 2, NULL), COHORT_ERROR_INVALID_ARGUMENT, "2");
  fails(cohort_group_set_states(group, states, 1, 2, &value), COHORT_ERROR_INVALID_ARGUMENT, "value");
  fails(cohort_group_set_states(group, NULL, 0, 0, NULL), COHORT_ERROR_INVALID_ARGUMENT, "value");
  for (i = 0; i < COUNT(states); ++i) cohort_ndarray_free(states[i]);
  holds_free(device_array(group, COHORT_GROUP_STATES, 0, 0), 7, 7, 7, 7);
  holds_free(device_array(group, COHORT_GROUP_STATES, 0, 1), 7, 7);
  cohort_group_free(group);
}

/* STA-04, STA-06: one value, 0 too, fills all; states keep their values over forward passes. */
static void a_value_fills_all_states_and_stays(void **state) {
  cohort_group *group = bind_memory();

  (void)state;
  fill_states(group, 2.5);
  forward(group, counted(SHAPE(3, 2), 0), NULL, 0);
  forward(group, counted(SHAPE(3, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f);
  fill_states(group, 0);
  forward(group, counted(SHAPE(3, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 1, 2, 3, 4, 5);
  cohort_group_free(group);
}

/* STA-06, BND-07: when the batch changes, the states follow its shape. */
static void states_follow_a_reshape(void **state) {
  cohort_group *group = bind_memory();
  cohort_descs *data = desc("data", SHAPE(6, 2), NULL);
  cohort_ndarray *memory;

  (void)state;
  ok(cohort_group_reshape(group, data, NULL));
  cohort_descs_free(data);
  memory = device_array(group, COHORT_GROUP_STATES, 0, 0);
  has_shape(memory, 3, 2);
  cohort_ndarray_free(memory);
  fill_states(group, 1);
  forward(group, counted(SHAPE(6, 2), 0), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_state_starts_at_zero_without_gradient),
      TEST(a_state_is_pooled),
      TEST(states_come_one_after_the_other),
      TEST(a_state_is_an_argument),
      TEST(states_are_live_and_never_merged),
      TEST(states_are_set_by_device),
      TEST(wrong_states_are_refused),
      TEST(a_value_fills_all_states_and_stays),
      TEST(states_follow_a_reshape),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
