/* SPDX-License-Identifier: Apache-2.0 */
/* Setting and averaging parameters: PRM-01 to PRM-11, GRP-07, GRP-18. */
#include <stdio.h>

#include "support/group_tests.h"

/* fc1 and fc2, two by two each, over a batch of four rows of two; parameters are given in the other order. */
static cohort_group *bind_two_layers(size_t num_contexts) {
  cohort_symbol *symbol =
      node("FullyConnected", "fc1", ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(variable("data")));

  symbol = node("FullyConnected", "fc2", ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(symbol));
  return bind_for_training(symbol, num_contexts, desc("data", SHAPE(4, 2), NULL), NULL,
                           NAMES("fc2_weight", "no_such_argument", "fc1_weight", "fc2_weight"), NULL);
}

/* BatchNorm over two channels: parameters gamma and beta, auxiliary states mean and variance. */
static cohort_group *bind_batch_norm(size_t num_contexts) {
  cohort_symbol *symbol = node("BatchNorm", "bn", ATTRS("fix_gamma", "False"), INPUTS(variable("data")));

  return bind_for_training(symbol, num_contexts, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("bn_gamma", "bn_beta"),
                           NULL);
}

/* Zeros on cpu(0): the target of a mean. */
static cohort_ndarray *zeros(const int64_t *shape, int32_t num_axes, int32_t dtype) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_zeros(shape, num_axes, dtype, NULL, &array));
  return array;
}

/* PRM-01: a parameter is copied to every device, converted; the group does not keep the source. */
static void a_parameter_is_copied_to_every_device(void **state) {
  const int64_t numbers[] = {3, -4};
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *source = NULL;
  cohort_arrays *params;

  (void)state;
  ok(cohort_ndarray_from_host(numbers, sizeof(numbers), SHAPE(1, 2), COHORT_DTYPE_INT64, NULL, &source));
  ok(cohort_arrays_create(&params));
  ok(cohort_arrays_add(params, "fc_weight", source));
  ok(cohort_group_set_params(group, params, NULL, 0));
  fill(source, 9);
  cohort_arrays_free(params);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 3, -4);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 3, -4);
  cohort_group_free(group);
}

/* PRM-02: parameters that are not named keep their value; any argument may be named; an empty list is fine. */
static void any_argument_may_be_set_and_the_rest_stay(void **state) {
  cohort_group *group = bind_two_layers(1);
  cohort_arrays *none = NULL;

  (void)state;
  set_param(group, "fc1_weight", floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)));
  set_param(group, "data", counted(SHAPE(4, 2), 1));
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 1, 2, 3, 4);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 1, 0), 0, 0, 0, 0);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 1, 2, 3, 4, 5, 6, 7);
  ok(cohort_arrays_create(&none));
  ok(cohort_group_set_params(group, none, NULL, 0));
  ok(cohort_group_set_params(group, none, none, 0));
  cohort_arrays_free(none);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 1, 2, 3, 4);
  cohort_group_free(group);
}

/* PRM-02: a label is an argument too. */
static void a_label_may_be_set_like_a_parameter(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);

  (void)state;
  fill(device_array(group, COHORT_GROUP_LABELS, 0, 0), 3);
  fails(try_set_params(group, named("label", counted(SHAPE(4, 1), 1)), NULL, 0), COHORT_ERROR_SHAPE, "label");
  ok(try_set_params(group, named("label", counted(SHAPE(2, 1), 1)), NULL, 0)); /* one device's shape */
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 0), 0, 1);
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 1), 0, 1);
  cohort_group_free(group);
}

/* PRM-03: unknown names are refused, or skipped on request; arguments and states are looked up separately. */
static void unknown_names_are_refused_or_skipped(void **state) {
  cohort_group *group = bind_batch_norm(2);

  (void)state;
  fails(try_set_params(group, named("no_such", counted(SHAPE(2), 1)), NULL, 0), COHORT_ERROR_NAME, "no_such");
  fails(try_set_params(group, named("bn_moving_mean", counted(SHAPE(2), 1)), NULL, 0), COHORT_ERROR_NAME,
        "bn_moving_mean");
  fails(try_set_params(group, named("bn_beta", counted(SHAPE(2), 1)), named("bn_beta", counted(SHAPE(2), 1)), 0),
        COHORT_ERROR_NAME, "bn_beta");
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 1, 0), 0, 0);
  ok(try_set_params(group, named("no_such", counted(SHAPE(2), 1)), named("bn_beta", counted(SHAPE(2), 1)), 1));
  ok(try_set_params(group, named("bn_beta", counted(SHAPE(2), 3)), named("bn_moving_var", counted(SHAPE(2), 5)), 1));
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 1, 1), 0, 3);
  holds_free(device_array(group, COHORT_GROUP_AUX, 1, 1), 0, 5);
  cohort_group_free(group);
}

/* PRM-04: without a list of auxiliary states these are left alone. */
static void auxiliary_states_stay_when_none_are_given(void **state) {
  cohort_group *group = bind_batch_norm(2);

  (void)state;
  ok(try_set_params(group, named("bn_beta", counted(SHAPE(2), 1)), named("bn_moving_mean", counted(SHAPE(2), 5)), 0));
  ok(try_set_params(group, named("bn_beta", counted(SHAPE(2), 2)), NULL, 0));
  holds_free(device_array(group, COHORT_GROUP_AUX, 0, 0), 0, 5);
  cohort_group_free(group);
}

/* PRM-05: if one array has another shape, none is copied. */
static void one_wrong_shape_and_nothing_is_copied(void **state) {
  cohort_group *group = bind_two_layers(2);
  cohort_arrays *params = named("fc1_weight", floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)));

  (void)state;
  add_named(params, "fc2_weight", counted(SHAPE(4), 1));
  fails(try_set_params(group, params, NULL, 0), COHORT_ERROR_SHAPE, "fc2_weight");
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 0, 0, 0, 0);
  cohort_group_free(group);
}

/* PRM-05: a wrong or unknown auxiliary state keeps the arguments from being copied, too. */
static void one_wrong_state_and_no_parameter_is_copied(void **state) {
  cohort_group *group = bind_batch_norm(2);
  cohort_arrays *params = named("bn_beta", counted(SHAPE(2), 1));

  (void)state;
  fails(try_set_params(group, named("bn_beta", counted(SHAPE(2), 1)), named("bn_moving_mean", counted(SHAPE(3), 1)), 0),
        COHORT_ERROR_SHAPE, "bn_moving_mean");
  fails(try_set_params(group, named("bn_beta", counted(SHAPE(2), 1)), named("bn_beta", counted(SHAPE(2), 1)), 0),
        COHORT_ERROR_NAME, "auxiliary states");
  add_named(params, "no_such", counted(SHAPE(2), 1));
  fails(try_set_params(group, params, NULL, 0), COHORT_ERROR_NAME, "arguments");
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 1, 0), 0, 0);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 1, 1), 0, 0);
  cohort_group_free(group);
}

/* GRP-18, PRM-09: parameters go by name, and are listed in the order of the symbol's arguments, each once. */
static void parameters_go_by_name(void **state) {
  cohort_group *group = bind_two_layers(2);
  const char *name = NULL;

  (void)state;
  assert_int_equal(num_arrays(group, COHORT_GROUP_PARAMS), 2);
  ok(cohort_group_name(group, COHORT_GROUP_PARAMS, 0, &name));
  assert_string_equal(name, "fc1_weight");
  ok(cohort_group_name(group, COHORT_GROUP_PARAMS, 1, &name));
  assert_string_equal(name, "fc2_weight");
  set_param(group, "fc1_weight", floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)));
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 1, 2, 3, 4);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 1, 1), 0, 0, 0, 0);
  cohort_group_free(group);
}

/* PRM-09: means are paired with targets by name, in whatever order the targets and param_names are. */
static void means_are_paired_by_name(void **state) {
  cohort_group *group = bind_two_layers(2);
  cohort_ndarray *first = zeros(SHAPE(2, 2), COHORT_DTYPE_FLOAT32), *second = zeros(SHAPE(2, 2), COHORT_DTYPE_FLOAT32);
  cohort_arrays *targets = NULL;

  (void)state;
  set_param(group, "fc1_weight", floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)));
  set_param(group, "fc2_weight", floats(SHAPE(2, 2), FLOATS(5, 6, 7, 8)));
  ok(cohort_arrays_create(&targets));
  ok(cohort_arrays_add(targets, "fc2_weight", second));
  ok(cohort_arrays_add(targets, "fc1_weight", first));
  ok(cohort_group_get_params(group, targets, NULL));
  holds_free(first, 1, 2, 3, 4);
  holds_free(second, 5, 6, 7, 8);
  cohort_arrays_free(targets);
  cohort_group_free(group);
}

/* PRM-06: targets may be on any context, and those of auxiliary states are given beside those of the parameters. */
static void targets_may_be_anywhere(void **state) {
  const cohort_context far = {COHORT_DEVICE_CPU, 7};
  const char *const names[] = {"bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"};
  cohort_group *group = bind_batch_norm(2);
  cohort_arrays *lists[2] = {NULL, NULL};
  cohort_ndarray *targets[4];
  size_t i;

  (void)state;
  for (i = 0; i < 4; ++i) {
    const int32_t list = i < 2 ? COHORT_GROUP_PARAMS : COHORT_GROUP_AUX;
    fill(device_array(group, list, i % 2, 0), (double)i);
    fill(device_array(group, list, i % 2, 1), (double)i + 3);
    if (i % 2 == 0) ok(cohort_arrays_create(&lists[i / 2]));
    ok(cohort_ndarray_zeros(SHAPE(2), COHORT_DTYPE_FLOAT32, &far, &targets[i]));
    ok(cohort_arrays_add(lists[i / 2], names[i], targets[i]));
  }
  ok(cohort_group_get_params(group, lists[0], lists[1]));
  for (i = 0; i < 4; ++i) holds_free(targets[i], (float)i + 1.5f, (float)i + 1.5f);
  cohort_arrays_free(lists[0]);
  cohort_arrays_free(lists[1]);
  cohort_group_free(group);
}

/* PRM-06: the mean over the devices is written to the caller's array, converted; extra targets are left alone. */
static void the_mean_goes_into_the_arrays_of_the_caller(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *target = zeros(SHAPE(1, 2), COHORT_DTYPE_FLOAT32), *whole = zeros(SHAPE(1, 2), COHORT_DTYPE_INT32);
  cohort_arrays *targets = NULL;
  int32_t numbers[2] = {-1, -1};

  (void)state;
  fill(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 2);
  fill(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 3);
  ok(cohort_arrays_create(&targets));
  ok(cohort_arrays_add(targets, "fc_weight", target));
  ok(cohort_group_get_params(group, targets, NULL));
  holds_free(target, 2.5f, 2.5f);
  ok(cohort_arrays_set(targets, "fc_weight", whole));
  add_named(targets, "extra", counted(SHAPE(3), 1));
  ok(cohort_group_get_params(group, targets, NULL));
  ok(cohort_ndarray_read(whole, numbers, sizeof(numbers)));
  assert_int_equal(numbers[0], 2);
  assert_int_equal(numbers[1], 2);
  cohort_ndarray_free(whole);
  cohort_arrays_free(targets);
  cohort_group_free(group);
}

/* PRM-06: every element of a long parameter has its own mean, in whatever pieces they are computed. */
static void a_long_parameter_has_the_mean_of_each_element(void **state) {
  enum { kLong = 5003 };
  static float found[kLong];
  cohort_group *group = bind_for_training(regression("1"), 3, desc("data", SHAPE(3, kLong), NULL),
                                          desc("label", SHAPE(3, 1), NULL), NAMES("fc_weight"), NULL);
  cohort_arrays *arg = NULL, *aux = NULL;
  cohort_ndarray *mean = NULL;
  size_t d, i;

  (void)state;
  for (d = 0; d < 3; ++d) {
    cohort_ndarray *const source = counted(SHAPE(1, kLong), (float)(1 << d));
    cohort_ndarray *const target = device_array(group, COHORT_GROUP_PARAMS, 0, d);

    ok(cohort_ndarray_copy_to(source, target));
    cohort_ndarray_free(source);
    cohort_ndarray_free(target);
  }
  ok(cohort_group_copy_params(group, &arg, &aux));
  ok(cohort_arrays_get(arg, 0, &mean));
  ok(cohort_ndarray_read(mean, found, sizeof(found)));
  for (i = 0; i < kLong; ++i) assert_true(found[i] == 7 * (float)i / 3);
  cohort_ndarray_free(mean);
  cohort_arrays_free(arg);
  arg = named("fc_weight", device_array(group, COHORT_GROUP_PARAMS, 0, 1)); /* one of the arrays that are averaged */
  ok(cohort_group_get_params(group, arg, NULL));
  mean = device_array(group, COHORT_GROUP_PARAMS, 0, 1);
  ok(cohort_ndarray_read(mean, found, sizeof(found)));
  for (i = 0; i < kLong; ++i) assert_true(found[i] == 7 * (float)i / 3);
  cohort_ndarray_free(mean);
  cohort_arrays_free(arg);
  cohort_arrays_free(aux);
  cohort_group_free(group);
}

/* PRM-06: auxiliary states are averaged too. */
static void auxiliary_states_are_averaged_too(void **state) {
  cohort_group *group = bind_batch_norm(2);
  cohort_arrays *arg = NULL, *aux = NULL;
  cohort_ndarray *mean = NULL;
  size_t index = 99;

  (void)state;
  fill(device_array(group, COHORT_GROUP_AUX, 0, 0), 1);
  fill(device_array(group, COHORT_GROUP_AUX, 0, 1), 2);
  ok(cohort_group_copy_params(group, &arg, &aux));
  ok(cohort_arrays_find(aux, "bn_moving_mean", &index));
  ok(cohort_arrays_get(aux, index, &mean));
  holds_free(mean, 1.5f, 1.5f);
  cohort_arrays_free(arg);
  cohort_arrays_free(aux);
  cohort_group_free(group);
}

/* PRM-07: every parameter needs a target of its shape, otherwise nothing is written. */
static void every_parameter_has_a_target(void **state) {
  cohort_group *group = bind_two_layers(2);
  cohort_ndarray *target = zeros(SHAPE(2, 2), COHORT_DTYPE_FLOAT32);
  cohort_arrays *targets = NULL;

  (void)state;
  fill(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 2);
  ok(cohort_arrays_create(&targets));
  ok(cohort_arrays_add(targets, "fc1_weight", target));
  fails(cohort_group_get_params(group, targets, NULL), COHORT_ERROR_NAME, "fc2_weight");
  add_named(targets, "fc2_weight", zeros(SHAPE(4), COHORT_DTYPE_FLOAT32));
  fails(cohort_group_get_params(group, targets, NULL), COHORT_ERROR_SHAPE, "fc2_weight");
  holds_free(target, 0, 0, 0, 0);
  cohort_arrays_free(targets);
  cohort_group_free(group);

  group = bind_batch_norm(2);
  targets = named("bn_gamma", zeros(SHAPE(2), COHORT_DTYPE_FLOAT32));
  add_named(targets, "bn_beta", zeros(SHAPE(2), COHORT_DTYPE_FLOAT32));
  fails(cohort_group_get_params(group, targets, NULL), COHORT_ERROR_NAME, "bn_moving_mean");
  cohort_arrays_free(targets);
  cohort_group_free(group);
}

/* PRM-08: a mean of float16 is summed in a wider type, so that the mean of 40000 and 40000 is 40000. */
static void a_mean_of_float16_does_not_overflow(void **state) {
  cohort_symbol *symbol = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("shift")));
  cohort_context contexts[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 1}};
  cohort_ndarray *target = zeros(SHAPE(2), COHORT_DTYPE_FLOAT32);
  const char *const params[] = {"shift"};
  cohort_descs *data = NULL;
  cohort_group *group = NULL;
  cohort_arrays *targets = NULL;
  cohort_ndarray *shift;

  (void)state;
  ok(cohort_descs_create(&data));
  ok(cohort_descs_add(data, "data", SHAPE(2), COHORT_DTYPE_FLOAT16, "C"));
  ok(cohort_group_create(symbol, contexts, 2, data, NULL, params, 1, 0, NULL, &group));
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  shift = device_array(group, COHORT_GROUP_PARAMS, 0, 0);
  assert_int_equal(dtype_of(shift), COHORT_DTYPE_FLOAT16);
  fill(shift, 40000);
  fill(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 40000);
  ok(cohort_arrays_create(&targets));
  ok(cohort_arrays_add(targets, "shift", target));
  ok(cohort_group_get_params(group, targets, NULL));
  holds_free(target, 40000, 40000);
  cohort_arrays_free(targets);
  cohort_group_free(group);
}

/* A group of data + shift on these devices, both of this dtype, and shift a parameter of one number. */
static cohort_group *bind_shift(size_t num_contexts, int32_t dtype) {
  cohort_symbol *symbol = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("shift")));
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 1}, {COHORT_DEVICE_CPU, 2}};
  const char *const params[] = {"shift"};
  cohort_descs *data = NULL;
  cohort_group *group = NULL;

  ok(cohort_descs_create(&data));
  ok(cohort_descs_add(data, "data", SHAPE(1), dtype, "C"));
  ok(cohort_group_create(symbol, contexts, num_contexts, data, NULL, params, 1, 0, NULL, &group));
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  return group;
}

/* The mean of the devices' numbers, read through a target of a dtype. */
static void mean_is(const cohort_group *group, int32_t dtype, const void *expected, size_t bytes) {
  cohort_ndarray *target = zeros(SHAPE(1), dtype);
  cohort_arrays *targets = NULL;
  char found[8];

  ok(cohort_arrays_create(&targets));
  ok(cohort_arrays_add(targets, "shift", target));
  ok(cohort_group_get_params(group, targets, NULL));
  ok(cohort_ndarray_read(target, found, bytes));
  assert_memory_equal(found, expected, bytes);
  cohort_ndarray_free(target);
  cohort_arrays_free(targets);
}

static void set_number(const cohort_group *group, size_t device, const void *number, size_t bytes) {
  cohort_ndarray *array = device_array(group, COHORT_GROUP_PARAMS, 0, device);

  ok(cohort_ndarray_write(array, number, bytes));
  cohort_ndarray_free(array);
}

/* PRM-08: a mean of integers is summed in a wider type, and truncated toward zero only if its target is of integers. */
static void a_mean_of_integers_is_cut_last(void **state) {
  const int32_t pairs[][3] = {{1, 4, 2}, {-1, -4, -2}, {INT32_MAX, INT32_MAX, INT32_MAX}};
  const int64_t large[] = {(INT64_C(1) << 62) + 1, (INT64_C(1) << 62) + 3}, middle = (INT64_C(1) << 62) + 2;
  const float half = 2.5f;
  cohort_group *group = bind_shift(2, COHORT_DTYPE_INT32);
  size_t i;

  (void)state;
  for (i = COUNT(pairs); i-- > 0;) {
    set_number(group, 0, &pairs[i][0], 4);
    set_number(group, 1, &pairs[i][1], 4);
    mean_is(group, COHORT_DTYPE_INT32, &pairs[i][2], 4);
  }
  mean_is(group, COHORT_DTYPE_FLOAT32, &half, 4);
  cohort_group_free(group);

  group = bind_shift(2, COHORT_DTYPE_INT64);
  set_number(group, 0, &large[0], 8);
  set_number(group, 1, &large[1], 8);
  mean_is(group, COHORT_DTYPE_INT64, &middle, 8);
  cohort_group_free(group);
}

/* PRM-08: means of float64 are summed in float64; on one device the mean is a copy. */
static void a_mean_of_float64_is_as_exact(void **state) {
  const double pair[] = {1e16, 4}, mean = 5e15 + 2;
  const int64_t exact = (INT64_C(1) << 53) + 1;
  cohort_group *group = bind_shift(2, COHORT_DTYPE_FLOAT64);

  (void)state;
  set_number(group, 0, &pair[0], 8);
  set_number(group, 1, &pair[1], 8);
  mean_is(group, COHORT_DTYPE_FLOAT64, &mean, 8);
  cohort_group_free(group);
  group = bind_shift(1, COHORT_DTYPE_INT64);
  set_number(group, 0, &exact, 8);
  mean_is(group, COHORT_DTYPE_INT64, &exact, 8);
  cohort_group_free(group);
}

/* PRM-08: copies that are equal on all devices are read as they are, bit for bit: such as parameters without gradient.
 */
static void the_mean_of_equal_copies_is_the_copy(void **state) {
  const float singles[] = {0.1f, 1 / 3.0f, 3e38f, -0.0f, 1e-45f};
  const double doubles[] = {0.1, 1 / 3.0, 1.7e308, -0.0, 5e-324};
  cohort_group *group = bind_shift(3, COHORT_DTYPE_FLOAT32);
  size_t i, d;

  (void)state;
  for (i = 0; i < COUNT(singles); ++i) {
    for (d = 0; d < 3; ++d) set_number(group, d, &singles[i], 4);
    mean_is(group, COHORT_DTYPE_FLOAT32, &singles[i], 4);
  }
  cohort_group_free(group);
  group = bind_shift(3, COHORT_DTYPE_FLOAT64);
  for (i = 0; i < COUNT(doubles); ++i) {
    for (d = 0; d < 3; ++d) set_number(group, d, &doubles[i], 8);
    mean_is(group, COHORT_DTYPE_FLOAT64, &doubles[i], 8);
  }
  cohort_group_free(group);
}

/* PRM-11: if the caller gives devices different parameters, nothing makes them equal again. */
static void devices_stay_apart_until_the_host_acts(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_executor *executor = NULL;
  cohort_arrays *params = named("fc_weight", floats(SHAPE(1, 2), FLOATS(5, 0)));

  (void)state;
  ok(cohort_group_executor(group, 1, &executor));
  ok(cohort_executor_copy_params_from(executor, params, NULL, 0));
  cohort_executor_free(executor);
  cohort_arrays_free(params);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 20, 30);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 1, 10);
  cohort_group_free(group);
}

/* Missing parameters are reported, or refused with nothing copied; otherwise the devices hold the given ones. */
static void parameters_that_are_missing_are_told(void **state) {
  cohort_symbol *fc = node("FullyConnected", "fc", ATTRS("num_hidden", "1"), INPUTS(variable("data")));
  cohort_symbol *bn = node("BatchNorm", "bn", NO_ATTRS, INPUTS(fc));
  cohort_group *group =
      bind_for_training(bn, 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight", "fc_bias"), NULL);
  cohort_arrays *arg = named("fc_weight", floats(SHAPE(1, 2), FLOATS(5, 6)));
  cohort_arrays *aux = named("bn_moving_mean", floats(SHAPE(1), FLOATS(7))), *none = NULL;
  cohort_descs *missing = NULL;
  const char *name = NULL;
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0, dtype = -7;
  size_t num = 0;

  (void)state;
  fails(cohort_group_assign_params(group, arg, aux, 0, 0, &missing), COHORT_ERROR_NAME, "'fc_bias', 'bn_moving_var'");
  assert_null(missing);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 0, 0);
  ok(cohort_group_assign_params(group, arg, aux, 1, 0, &missing));
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 5, 6);
  holds_free(device_array(group, COHORT_GROUP_AUX, 0, 1), 7);
  ok(cohort_descs_num(missing, &num));
  assert_int_equal(num, 2);
  ok(cohort_descs_get(missing, 0, &name, shape, COHORT_MAX_AXES, &num_axes, &dtype, NULL));
  assert_string_equal(name, "fc_bias");
  assert_int_equal(num_axes, 1);
  assert_int_equal(shape[0], 1);
  assert_int_equal(dtype, COHORT_DTYPE_FLOAT32);
  cohort_descs_free(missing);
  add_named(arg, "fc_bias", floats(SHAPE(1), FLOATS(1)));
  add_named(aux, "bn_moving_var", floats(SHAPE(1), FLOATS(2)));
  ok(cohort_group_assign_params(group, arg, aux, 0, 0, &missing));
  ok(cohort_descs_num(missing, &num));
  assert_int_equal(num, 0);
  cohort_descs_free(missing);
  /* With an empty list all are reported missing; they are not silently left zero. */
  ok(cohort_arrays_create(&none));
  fails(cohort_group_assign_params(group, none, NULL, 0, 0, NULL), COHORT_ERROR_NAME, "'fc_weight', 'fc_bias', 'bn_");
  add_named(arg, "of_another", floats(SHAPE(1), FLOATS(1)));
  fails(cohort_group_assign_params(group, arg, aux, 0, 0, NULL), COHORT_ERROR_NAME, "of_another");
  ok(cohort_group_assign_params(group, arg, aux, 0, 1, NULL));
  cohort_arrays_free(none);
  cohort_arrays_free(arg);
  cohort_arrays_free(aux);
  cohort_group_free(group);
}

/* Seven rows on two devices, four and three of them: a parameter with a row per sample has another shape on each. It
 * has no mean, and its gradients no sum; each device may train it separately. */
static void a_parameter_that_follows_the_batch_is_each_devices_own(void **state) {
  static const cohort_update_mode summing[] = {COHORT_UPDATE_ON_STORE, COHORT_UPDATE_PER_DEVICE};
  cohort_symbol *symbol = node("elemwise_mul", "product", NO_ATTRS, INPUTS(variable("data"), variable("own")));
  cohort_group *group = bind_for_training(symbol, 2, desc("data", SHAPE(7, 3000), NULL), NULL, NAMES("own"), NULL);
  cohort_arrays *arg = named("own", counted(SHAPE(4, 3000), 0)), *aux = NULL;
  cohort_optimizer *optimizer = NULL;
  size_t i;

  (void)state;
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  forward(group, counted(SHAPE(7, 3000), 0), NULL, 1);
  backward(group, counted(SHAPE(7, 3000), 0));
  for (i = 0; i < COUNT(summing); ++i)
    fails(cohort_group_update(group, optimizer, summing[i]), COHORT_ERROR_SHAPE, "'own': expected one shape on all");
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_NO_STORE));
  ok(cohort_group_wait(group));
  fails(cohort_group_get_params(group, arg, NULL), COHORT_ERROR_SHAPE, "'own': expected one shape on all");
  fails(cohort_group_copy_params(group, &arg, &aux), COHORT_ERROR_SHAPE, "(3, 3000)");
  assert_null(aux);
  cohort_arrays_free(arg);
  cohort_optimizer_free(optimizer);
  cohort_group_free(group);
}

enum { LARGE = 800, LARGE_LAYERS = 4 }; /* 2.6 MB per layer */

static void have_all(cohort_arrays *list, size_t index, float expected) {
  static float values[LARGE * LARGE];
  cohort_ndarray *array = NULL;
  size_t i;

  ok(cohort_arrays_get(list, index, &array));
  ok(cohort_ndarray_read(array, values, sizeof(values)));
  for (i = 0; i < COUNT(values); ++i)
    if (values[i] != expected) fail_msg("layer %zu, element %zu: expected %g, found %g", index, i, expected, values[i]);
  cohort_ndarray_free(array);
}

/* PRM-01, PRM-06: large parameters are copied to the devices in parallel. The source may be one device's own array, and
 * one array, or slices of one, may be the targets of several parameters. */
static void large_parameters_are_copied_as_small_ones_are(void **state) {
  cohort_arrays *lists[2] = {NULL, NULL}, *targets = NULL;
  cohort_ndarray *one = NULL;
  cohort_symbol *symbol = variable("data");
  cohort_group *group;
  char names[LARGE_LAYERS][8], name[8];
  const char *params[LARGE_LAYERS + 1] = {NULL};
  size_t i, d;

  (void)state;
  for (i = 0; i < LARGE_LAYERS; ++i) {
    snprintf(names[i], sizeof(names[i]), "w%zu", i);
    params[i] = names[i];
    snprintf(name, sizeof(name), "fc%zu", i);
    symbol =
        node("FullyConnected", name, ATTRS("num_hidden", "800", "no_bias", "True"), INPUTS(symbol, variable(names[i])));
  }
  group = bind_for_training(symbol, 3, desc("data", SHAPE(3, LARGE), NULL), NULL, params, NULL);
  for (i = 0; i < 2; ++i) ok(cohort_arrays_create(&lists[i]));
  ok(cohort_arrays_create(&targets));
  for (i = 0; i < LARGE_LAYERS; ++i) {
    cohort_ndarray *given = zeros(SHAPE(LARGE, LARGE), COHORT_DTYPE_FLOAT32);

    ok(cohort_ndarray_fill(given, 10 + (double)i));
    add_named(lists[0], names[i], given);
    add_named(targets, names[i], zeros(SHAPE(LARGE, LARGE), COHORT_DTYPE_FLOAT32));
  }
  ok(cohort_group_set_params(group, lists[0], NULL, 0));
  ok(cohort_group_get_params(group, targets, NULL));
  for (i = 0; i < LARGE_LAYERS; ++i) have_all(targets, i, 10 + (float)i);

  for (i = 0; i < LARGE_LAYERS; ++i)
    for (d = 0; d < 3; ++d) fill(device_array(group, COHORT_GROUP_PARAMS, i, d), (double)(3 * i + d * d));
  ok(cohort_group_get_params(group, targets, NULL));
  for (i = 0; i < LARGE_LAYERS; ++i) have_all(targets, i, (9 * (float)i + 5) / 3);

  for (i = 0; i < LARGE_LAYERS; ++i) add_named(lists[1], names[i], device_array(group, COHORT_GROUP_PARAMS, i, 1));
  ok(cohort_group_set_params(group, lists[1], NULL, 0));
  ok(cohort_group_get_params(group, targets, NULL));
  for (i = 0; i < LARGE_LAYERS; ++i) have_all(targets, i, 3 * (float)i + 1);

  ok(cohort_arrays_get(targets, 3, &one));
  ok(cohort_arrays_set(targets, names[2], one));
  ok(cohort_group_get_params(group, targets, NULL));
  have_all(targets, 2, 10); /* that of the later one */
  cohort_ndarray_free(one);

  one = zeros(SHAPE(LARGE_LAYERS * LARGE, LARGE), COHORT_DTYPE_FLOAT32);
  for (i = 0; i < LARGE_LAYERS; ++i) {
    cohort_ndarray *slice = NULL;

    ok(cohort_ndarray_slice(one, (int64_t)i * LARGE, (int64_t)(i + 1) * LARGE, &slice));
    ok(cohort_arrays_set(targets, names[i], slice));
    cohort_ndarray_free(slice);
  }
  cohort_ndarray_free(one);
  ok(cohort_group_get_params(group, targets, NULL));
  for (i = 0; i < LARGE_LAYERS; ++i) have_all(targets, i, 3 * (float)i + 1);
  for (i = 0; i < 2; ++i) cohort_arrays_free(lists[i]);
  cohort_arrays_free(targets);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_parameter_is_copied_to_every_device),
      TEST(large_parameters_are_copied_as_small_ones_are),
      TEST(any_argument_may_be_set_and_the_rest_stay),
      TEST(a_label_may_be_set_like_a_parameter),
      TEST(unknown_names_are_refused_or_skipped),
      TEST(auxiliary_states_stay_when_none_are_given),
      TEST(one_wrong_shape_and_nothing_is_copied),
      TEST(one_wrong_state_and_no_parameter_is_copied),
      TEST(parameters_go_by_name),
      TEST(means_are_paired_by_name),
      TEST(targets_may_be_anywhere),
      TEST(the_mean_goes_into_the_arrays_of_the_caller),
      TEST(a_long_parameter_has_the_mean_of_each_element),
      TEST(auxiliary_states_are_averaged_too),
      TEST(every_parameter_has_a_target),
      TEST(a_mean_of_float16_does_not_overflow),
      TEST(a_mean_of_integers_is_cut_last),
      TEST(a_mean_of_float64_is_as_exact),
      TEST(the_mean_of_equal_copies_is_the_copy),
      TEST(devices_stay_apart_until_the_host_acts),
      TEST(parameters_that_are_missing_are_told),
      TEST(a_parameter_that_follows_the_batch_is_each_devices_own),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
