/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments that a group is created from, and its contents: GRP-01 to GRP-25, DIF-05, DIF-21. */
#include "support/group_tests.h"

#define BATCH_NORM ATTRS("fix_gamma", "False")

/* Every kind of argument: data, fc_weight, fc_bias, bn_gamma, bn_beta, memory, label; bn_moving_mean, bn_moving_var. */
static cohort_symbol *many_arguments(void) {
  cohort_symbol *fc = node("FullyConnected", "fc", ATTRS("num_hidden", "2"), INPUTS(variable("data")));
  cohort_symbol *bn = node("BatchNorm", "bn", BATCH_NORM, INPUTS(fc));
  cohort_symbol *sum = node("elemwise_add", "sum", NO_ATTRS, INPUTS(bn, variable("memory")));

  return node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(sum, variable("label")));
}

static cohort_group *bind_many(void) {
  static const char *const states[] = {"memory"}, *const fixed[] = {"bn_gamma"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  options.state_names = states;
  options.num_state_names = 1;
  options.fixed_param_names = fixed;
  options.num_fixed_param_names = 1;
  options.inputs_need_grad = 1;
  return bind_for_training(many_arguments(), 2, desc("data", SHAPE(5, 3), NULL), desc("label", SHAPE(5, 2), NULL),
                           NAMES("bn_gamma", "fc_bias", "no_such", "fc_weight", "fc_bias"), &options);
}

static cohort_executor *executor_of(const cohort_group *group, size_t device) {
  cohort_executor *executor = NULL;

  ok(cohort_group_executor(group, device, &executor));
  return executor;
}

/* Checks the names of a list, which end with NULL. */
static void names_are(const cohort_group *group, int32_t list, const char *const *names) {
  size_t i;

  for (i = 0; names[i]; ++i) {
    const char *name = NULL;

    ok(cohort_group_name(group, list, i, &name));
    assert_string_equal(name, names[i]);
  }
  assert_int_equal(num_arrays(group, list), i);
}

/* Checks that all elements of an array are zeros; frees it. */
static void is_zero(cohort_ndarray *array) {
  float values[64];
  int64_t size = 0, i;

  ok(cohort_ndarray_size(array, &size));
  assert_true(size <= (int64_t)COUNT(values));
  ok(cohort_ndarray_read(array, values, (size_t)size * sizeof(float)));
  for (i = 0; i < size; ++i) assert_true(values[i] == 0);
  cohort_ndarray_free(array);
}

/* The dtype of an array of device 1; frees it. */
static void dtype_is(const cohort_group *group, int32_t list, size_t index, int32_t dtype) {
  cohort_ndarray *array = device_array(group, list, index, 1);

  assert_int_equal(dtype_of(array), dtype);
  cohort_ndarray_free(array);
}

/* GRP-01: changes of the caller's symbol after the call do not matter, not for later binds either. */
static void a_group_keeps_the_symbol_as_it_was(void **state) {
  const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};
  const char *const key = "__layout__", *const value = "CN";
  cohort_symbol *symbol = node("relu", "r", NO_ATTRS, INPUTS(variable("data")));
  cohort_descs *data = desc("data", SHAPE(4, 2), NULL);
  cohort_group *group = NULL;
  int32_t axis = -7;

  (void)state;
  ok(cohort_group_create(symbol, &cpu0, 1, data, NULL, NULL, 0, 1, NULL, &group));
  ok(cohort_symbol_set_attrs(symbol, &key, &value, 1));
  ok(cohort_group_bind(group, data, NULL, NULL, 1));
  ok(cohort_group_axis(group, COHORT_GROUP_OUTPUTS, 0, &axis));
  assert_int_equal(axis, 0);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 1, 2, 3, 4, 5, 6, 7);
  cohort_group_free(group);
}

/* GRP-07, GRP-18: parameter names that are no arguments, or that occur twice, are ignored; parameters are in the order
 * of the arguments, and the arrays match the names. The list may be empty. */
static void parameters_have_the_order_of_the_arguments(void **state) {
  cohort_group *group = bind_many();

  (void)state;
  names_are(group, COHORT_GROUP_PARAMS, NAMES("fc_weight", "fc_bias", "bn_gamma"));
  names_are(group, COHORT_GROUP_GRADS, NAMES("fc_weight", "fc_bias", "bn_gamma"));
  set_param(group, "fc_bias", floats(SHAPE(2), FLOATS(5, 6)));
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 1, 1), 5, 6);
  is_zero(device_array(group, COHORT_GROUP_PARAMS, 2, 1));
  cohort_group_free(group);

  group = bind_for_training(regression("1"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                            NO_NAMES, NULL);
  assert_int_equal(num_arrays(group, COHORT_GROUP_PARAMS), 0);
  assert_int_equal(num_arrays(group, COHORT_GROUP_GRADS), 0);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 1), 1);
  backward(group, NULL);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_group_free(group);
}

/* GRP-08: a list of arguments that the caller gives has to be the symbol's. */
static void given_argument_names_are_the_symbols(void **state) {
  const char *const good[] = {"data", "fc_weight", "label"}, *const order[] = {"fc_weight", "data", "label"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;

  (void)state;
  options.arg_names = good;
  options.num_arg_names = 3;
  group = bind_regression(2, 4, &options);
  cohort_group_free(group);
  group = NULL;
  options.num_arg_names = 2;
  fails(try_bind(&group, regression("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options),
        COHORT_ERROR_INVALID_ARGUMENT, "arg_names: expected the symbol's 3 arguments, found 2");
  options.arg_names = order;
  options.num_arg_names = 3;
  fails(try_bind(&group, regression("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options),
        COHORT_ERROR_INVALID_ARGUMENT, "arg_names[0]: expected the symbol's 'data', found 'fc_weight'");
  assert_null(group);
}

/* GRP-09, GRP-10: a group for inference has no gradients, whatever a list or a map says; gradients of inputs exist only
 * on request. */
static void gradients_are_for_training(void **state) {
  const char *const words[] = {"write", "write", "write"}, *const names[] = {"data", "fc_weight", "label"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;
  size_t with_names, arg;

  (void)state;
  options.inputs_need_grad = 1;
  options.grad_req_list = words;
  options.num_grad_reqs = 3;
  for (with_names = 0; with_names < 2; ++with_names) {
    cohort_executor *executor;

    options.grad_req_names = with_names ? names : NULL;
    group = bind_for_inference(regression("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options);
    executor = executor_of(group, 1);
    assert_int_equal(num_arrays(group, COHORT_GROUP_GRADS), 0);
    assert_int_equal(num_arrays(group, COHORT_GROUP_INPUT_GRADS), 0);
    for (arg = 0; arg < 3; ++arg) {
      cohort_ndarray *grad = NULL;
      int32_t grad_req = -1;

      ok(cohort_executor_grad_req(executor, arg, &grad_req));
      assert_int_equal(grad_req, COHORT_GRAD_NULL);
      ok(cohort_executor_array(executor, COHORT_EXECUTOR_GRADS, arg, &grad));
      assert_null(grad);
    }
    cohort_executor_free(executor);
    cohort_group_free(group);
  }
  group = bind_regression(2, 4, NULL);
  assert_int_equal(num_arrays(group, COHORT_GROUP_GRADS), 1);
  assert_int_equal(num_arrays(group, COHORT_GROUP_INPUT_GRADS), 0);
  cohort_group_free(group);
}

/* GRP-13: a label without descriptor is an ordinary argument: of its inferred shape, zero, without gradient. */
static void a_label_without_descriptor_is_a_zero(void **state) {
  cohort_group *group =
      bind_for_training(regression("1"), 2, desc("data", SHAPE(5, 2), NULL), NULL, NAMES("fc_weight"), NULL);
  cohort_executor *executor = executor_of(group, 0);
  cohort_ndarray *label, *grad = NULL;

  (void)state;
  assert_int_equal(num_arrays(group, COHORT_GROUP_LABELS), 0);
  label = device_array(group, COHORT_GROUP_ARGS, 2, 0);
  has_shape(label, 3); /* one number per row, as MXNet infers it */
  is_zero(label);
  ok(cohort_executor_array_named(executor, COHORT_EXECUTOR_GRADS, "label", &grad));
  assert_null(grad);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  forward(group, counted(SHAPE(5, 2), 1), NULL, 1);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 76 * 6 + 98 * 8, 76 * 7 + 98 * 9);
  cohort_executor_free(executor);
  cohort_group_free(group);
}

/* LinearRegressionOutput over fc, with `__dtype__` on its data and its label; NULL: without. */
static cohort_symbol *typed(const char *data_dtype, const char *label_dtype) {
  const char *const key = "__dtype__";
  cohort_symbol *data = NULL, *label = NULL;

  ok(cohort_symbol_variable("data", &key, &data_dtype, data_dtype ? 1 : 0, &data));
  ok(cohort_symbol_variable("label", &key, &label_dtype, label_dtype ? 1 : 0, &label));
  data = node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "True"), INPUTS(data));
  return node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(data, label));
}

/* Binds it with descriptors of these dtypes, and checks the dtypes of data, weight and label. */
static void dtypes_are(const char *data_attr, int32_t data_desc, int32_t label_desc,
                       const cohort_group_options *options, int32_t expected) {
  cohort_descs *data = NULL, *label = NULL;
  cohort_group *group;

  ok(cohort_descs_create(&data));
  ok(cohort_descs_create(&label));
  ok(cohort_descs_add(data, "data", SHAPE(4, 2), data_desc, NULL));
  ok(cohort_descs_add(label, "label", SHAPE(4, 1), label_desc, NULL));
  group = bind_for_training(typed(data_attr, NULL), 2, data, label, NAMES("fc_weight"), options);
  dtype_is(group, COHORT_GROUP_DATA, 0, expected);
  dtype_is(group, COHORT_GROUP_PARAMS, 0, expected);
  dtype_is(group, COHORT_GROUP_GRADS, 0, expected);
  dtype_is(group, COHORT_GROUP_LABELS, 0, expected);
  dtype_is(group, COHORT_GROUP_OUTPUTS, 0, expected);
  cohort_group_free(group);
}

/* GRP-14, GRP-22, DIF-05: an override comes first, then __dtype__ of the data, then the descriptor, then float32;
 * parameters follow. */
static void dtypes_of_inputs_have_an_order(void **state) {
  const int32_t half = COHORT_DTYPE_FLOAT16, single = COHORT_DTYPE_FLOAT32, wide = COHORT_DTYPE_FLOAT64;
  const char *const names[] = {"data", "label"};
  const int32_t dtypes[] = {COHORT_DTYPE_FLOAT64, COHORT_DTYPE_FLOAT64};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  (void)state;
  dtypes_are(NULL, COHORT_DTYPE_NONE, COHORT_DTYPE_NONE, NULL, single);
  dtypes_are(NULL, half, half, NULL, half);
  dtypes_are("2", wide, half, NULL, half);
  dtypes_are("-1", wide, wide, NULL, wide);
  options.input_dtype_names = names;
  options.input_dtypes = dtypes;
  options.num_input_dtypes = 2;
  dtypes_are("2", half, half, &options, wide);
  options.num_input_dtypes = 1; /* a label that the override does not name keeps its descriptor's dtype */
  dtypes_are("2", half, wide, &options, wide);
}

/* GRP-14: __dtype__ of a label does not count, and dtypes that contradict each other name the operator and its
 * input. */
static void dtypes_that_do_not_go_together_are_refused(void **state) {
  cohort_descs *data = NULL;
  cohort_group *group;
  cohort_error *error;

  (void)state;
  group = bind_for_training(typed(NULL, "2"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                            NAMES("fc_weight"), NULL);
  dtype_is(group, COHORT_GROUP_LABELS, 0, COHORT_DTYPE_FLOAT32);
  cohort_group_free(group);
  group = NULL;
  ok(cohort_descs_create(&data));
  ok(cohort_descs_add(data, "data", SHAPE(4, 2), COHORT_DTYPE_FLOAT16, NULL));
  error = try_bind(&group, typed(NULL, NULL), 2, data, desc("label", SHAPE(4, 1), NULL), NAMES("fc_weight"), NULL);
  assert_string_equal(cohort_error_subject(error), "lro");
  fails(error, COHORT_ERROR_DTYPE, "input 1: expected float16, found float32; its inputs: fc_output, label");
  assert_null(group);
}

/* GRP-15: before anything runs all arrays are zeros. */
static void all_arrays_start_at_zero(void **state) {
  const int32_t lists[] = {COHORT_GROUP_ARGS, COHORT_GROUP_AUX, COHORT_GROUP_OUTPUTS, COHORT_GROUP_INPUT_GRADS};
  cohort_group *group = bind_many();
  size_t i, index, device;

  (void)state;
  for (i = 0; i < COUNT(lists); ++i)
    for (index = 0; index < num_arrays(group, lists[i]); ++index)
      for (device = 0; device < 2; ++device) is_zero(device_array(group, lists[i], index, device));
  for (device = 0; device < 2; ++device) {
    is_zero(device_array(group, COHORT_GROUP_GRADS, 0, device));
    is_zero(device_array(group, COHORT_GROUP_GRADS, 1, device));
  }
  is_zero(merged(group, COHORT_GROUP_OUTPUTS, 0));
  cohort_group_free(group);
}

/* GRP-16: the message lists all arguments of unknown shape, or names the node with both shapes. */
static void shapes_that_do_not_follow_are_named(void **state) {
  cohort_symbol *sum = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("other")));
  cohort_symbol *two = node("dot", "product", NO_ATTRS, INPUTS(variable("left"), variable("right")));
  cohort_symbol *heads[2], *both = NULL;
  cohort_descs *data = desc("data", SHAPE(4, 2), NULL);
  cohort_group *group = NULL;
  cohort_error *error;

  (void)state;
  heads[0] = linear("1");
  heads[1] = two;
  ok(cohort_symbol_group(heads, 2, &both));
  cohort_symbol_free(heads[0]);
  cohort_symbol_free(heads[1]);
  fails(try_bind(&group, both, 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), NULL), COHORT_ERROR_SHAPE,
        "unknown: left, right");
  add_desc(data, "other", SHAPE(4, 3), NULL);
  error = try_bind(&group, sum, 2, data, NULL, NO_NAMES, NULL);
  assert_non_null(strstr(cohort_error_message(error), "(2, 2)"));
  assert_non_null(strstr(cohort_error_message(error), "(2, 3)"));
  fails(error, COHORT_ERROR_SHAPE, "sum");
  assert_null(group);
}

/* GRP-16, GRP-21: arguments, auxiliary states or state names that occur twice are refused by name. */
static void names_that_come_twice_are_refused(void **state) {
  cohort_symbol *sum = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("data")));
  cohort_symbol *first = node("BatchNorm", "bn", BATCH_NORM, INPUTS(variable("data"), variable("g"), variable("b")));
  cohort_symbol *second = node("BatchNorm", "bn", BATCH_NORM, INPUTS(first, variable("h"), variable("c")));
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;

  (void)state;
  fails(try_bind(&group, sum, 2, desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, NULL), COHORT_ERROR_NAME,
        "arguments: expected names that differ, found twice: 'data'");
  fails(try_bind(&group, second, 2, desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, NULL), COHORT_ERROR_NAME,
        "auxiliary states: expected names that differ, found twice: 'bn_moving_mean', 'bn_moving_var'");
  options.state_names = NAMES("memory", "memory");
  options.num_state_names = 2;
  fails(try_bind(&group, many_arguments(), 2, desc("data", SHAPE(5, 3), NULL), NULL, NO_NAMES, &options),
        COHORT_ERROR_NAME, "states: expected names that differ, found twice: 'memory'");
  assert_null(group);
}

/* Without a list of names, all arguments but data, labels and states are parameters; an empty list means no
 * parameters. */
static void without_names_all_but_inputs_and_states_are_parameters(void **state) {
  static const char *const states[] = {"memory"};
  const cohort_context cpus[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 1}};
  cohort_symbol *symbol = many_arguments();
  cohort_descs *data = desc("data", SHAPE(5, 3), NULL), *label = desc("label", SHAPE(5, 2), NULL);
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;
  cohort_manager_options with_states = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager = NULL;

  (void)state;
  options.state_names = with_states.state_names = states;
  options.num_state_names = with_states.num_state_names = 1;
  ok(cohort_group_create(symbol, cpus, 2, data, label, NULL, 0, 1, &options, &group));
  names_are(group, COHORT_GROUP_PARAMS, NAMES("fc_weight", "fc_bias", "bn_gamma", "bn_beta"));
  names_are(group, COHORT_GROUP_GRADS, NAMES("fc_weight", "fc_bias", "bn_gamma", "bn_beta"));
  cohort_group_free(group);
  /* The label of a loss is no parameter either if it has no descriptor. */
  ok(cohort_group_create(symbol, cpus, 2, data, NULL, NULL, 0, 0, &options, &group));
  names_are(group, COHORT_GROUP_PARAMS, NAMES("fc_weight", "fc_bias", "bn_gamma", "bn_beta"));
  cohort_group_free(group);
  ok(cohort_group_create(symbol, cpus, 2, data, label, states, 0, 1, &options, &group));
  names_are(group, COHORT_GROUP_PARAMS, NO_NAMES);
  cohort_group_free(group);
  ok(cohort_manager_create(symbol, cpus, 2, 5, data, label, NULL, 0, &with_states, &manager));
  ok(cohort_manager_main_group(manager, &group));
  names_are(group, COHORT_GROUP_PARAMS, NAMES("fc_weight", "fc_bias", "bn_gamma", "bn_beta"));
  cohort_group_free(group);
  cohort_manager_free(manager);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
}

static void note_label(int32_t level, const char *message, void *user_data) {
  if (level == COHORT_LOG_WARNING && strstr(message, "'label' of 'lro'")) ++*(int *)user_data;
}

/* A loss that would train on a label that is never loaded causes a warning; in inference it does not. */
static void a_label_that_is_bound_to_nothing_is_a_warning(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  int count = 0;

  (void)state;
  options.log = note_label;
  options.log_user_data = &count;
  cohort_group_free(
      bind_for_training(regression("1"), 1, desc("data", SHAPE(2, 2), NULL), NULL, NAMES("fc_weight"), &options));
  assert_int_equal(count, 1);
  cohort_group_free(
      bind_for_inference(regression("1"), 1, desc("data", SHAPE(2, 2), NULL), NULL, NAMES("fc_weight"), &options));
  cohort_group_free(bind_for_training(regression("1"), 1, desc("data", SHAPE(2, 2), NULL),
                                      desc("label", SHAPE(2, 1), NULL), NAMES("fc_weight"), &options));
  cohort_group_free(bind_for_training(regression("1"), 1, desc("data", SHAPE(2, 2), NULL), NULL,
                                      NAMES("fc_weight", "label"), &options));
  assert_int_equal(count, 1);
}

static void note_level(int32_t level, const char *message, void *user_data) {
  if (strstr(message, "too small")) *(int32_t *)user_data = level;
}

/* GRP-24: a group logs to its own function if it has one, otherwise to that of the library. */
static void messages_go_to_the_library_without_a_function(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *small = bind_regression(1, 2, NULL), *large;
  int32_t to_library = -1, to_group = -1;

  (void)state;
  ok(cohort_set_log(COHORT_LOG_WARNING, note_level, &to_library));
  options.shared_group = small;
  large = bind_regression(1, 30, &options);
  cohort_group_free(large);
  assert_int_equal(to_library, COHORT_LOG_WARNING);
  to_library = -1;
  options.log = note_level;
  options.log_user_data = &to_group;
  large = bind_regression(1, 60, &options);
  cohort_group_free(large);
  assert_int_equal(to_library, -1);
  assert_int_equal(to_group, COHORT_LOG_WARNING);
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  cohort_group_free(small);
}

/* GRP-17, GRP-21: the lists of a group, each in its order; a gradient that does not exist is NULL. */
static void a_group_shows_all_its_arrays(void **state) {
  const int32_t with_axes[] = {COHORT_GROUP_DATA, COHORT_GROUP_LABELS, COHORT_GROUP_OUTPUTS, COHORT_GROUP_INPUT_GRADS};
  cohort_group *group = bind_many();
  cohort_ndarray *array;
  cohort_arrays *arrays = NULL;
  size_t i, num = 0;

  (void)state;
  names_are(group, COHORT_GROUP_DATA, NAMES("data"));
  names_are(group, COHORT_GROUP_LABELS, NAMES("label"));
  names_are(group, COHORT_GROUP_AUX, NAMES("bn_moving_mean", "bn_moving_var"));
  names_are(group, COHORT_GROUP_STATES, NAMES("memory"));
  names_are(group, COHORT_GROUP_OUTPUTS, NAMES("lro_output"));
  names_are(group, COHORT_GROUP_INPUT_GRADS, NAMES("data"));
  names_are(group, COHORT_GROUP_ARGS, NAMES("data", "fc_weight", "fc_bias", "bn_gamma", "bn_beta", "memory", "label"));
  assert_null(device_array(group, COHORT_GROUP_GRADS, 2, 0));
  array = device_array(group, COHORT_GROUP_DATA, 0, 1);
  has_shape(array, 2, 3);
  cohort_ndarray_free(array);
  array = device_array(group, COHORT_GROUP_STATES, 0, 0);
  has_shape(array, 3, 2);
  cohort_ndarray_free(array);
  array = device_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0);
  has_shape(array, 3, 3);
  cohort_ndarray_free(array);
  for (i = 0; i < COUNT(with_axes); ++i) {
    int32_t axis = -7;

    ok(cohort_group_axis(group, with_axes[i], 0, &axis));
    assert_int_equal(axis, 0);
  }
  ok(cohort_group_arrays(group, COHORT_GROUP_GRADS, 1, &arrays));
  ok(cohort_arrays_num(arrays, &num));
  assert_int_equal(num, 3);
  cohort_arrays_free(arrays);
  cohort_group_free(group);
}

/* GRP-17: the arrays of these lists are those that the group computes with. */
static void the_arrays_shown_are_live(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_executor *executor = executor_of(group, 1);
  cohort_ndarray *same = NULL;

  (void)state;
  fill(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 3);
  fill(device_array(group, COHORT_GROUP_DATA, 0, 1), 2);
  fill(device_array(group, COHORT_GROUP_LABELS, 0, 1), 5);
  ok(cohort_group_run(group, 1));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 12);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 14, 14);
  ok(cohort_executor_array_named(executor, COHORT_EXECUTOR_ARGS, "fc_weight", &same));
  fill(same, 4);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 4, 4);
  cohort_executor_free(executor);
  cohort_group_free(group);
}

/* GRP-19: the options in effect are the same in whatever order the caller filled them in; labels and the shared group
 * are optional. */
static void options_have_no_order(void **state) {
  const char *const names[2][2] = {{"data", "fc_weight"}, {"fc_weight", "data"}};
  const char *const words[2][2] = {{"add", "null"}, {"null", "add"}};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  size_t i;

  (void)state;
  options.shared_group = NULL;
  for (i = 0; i < 2; ++i) {
    cohort_executor *executor;
    cohort_group *group;
    int32_t data = -1, weight = -1;

    options.grad_req_names = names[i];
    options.grad_req_list = words[i];
    options.num_grad_reqs = 2;
    group = bind_for_training(regression("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options);
    executor = executor_of(group, 0);
    ok(cohort_executor_grad_req(executor, 0, &data));
    ok(cohort_executor_grad_req(executor, 1, &weight));
    assert_int_equal(data, COHORT_GRAD_ADD);
    assert_int_equal(weight, COHORT_GRAD_NULL);
    assert_int_equal(num_arrays(group, COHORT_GROUP_LABELS), 0);
    cohort_executor_free(executor);
    cohort_group_free(group);
  }
}

/* GRP-20: an output with several rows per sample has the rows of all devices together; one without batch axis has its
 * own. */
static void output_shapes_are_sums_over_the_devices(void **state) {
  const char *const layouts[] = {"N", "C"};
  const int64_t expected[] = {15, 9};
  size_t i;

  (void)state;
  for (i = 0; i < 2; ++i) {
    cohort_symbol *flat =
        node("Reshape", "flat", ATTRS("shape", "(-1,)", "__layout__", layouts[i]), INPUTS(variable("data")));
    cohort_group *group = bind_for_training(flat, 2, desc("data", SHAPE(5, 3), NULL), NULL, NO_NAMES, NULL);
    cohort_descs *shapes = NULL;
    cohort_ndarray *output;
    const char *name = NULL;
    int64_t shape[COHORT_MAX_AXES];
    int32_t num_axes = 0, dtype = -7;

    ok(cohort_group_output_shapes(group, &shapes));
    ok(cohort_descs_get(shapes, 0, &name, shape, COHORT_MAX_AXES, &num_axes, &dtype, NULL));
    assert_int_equal(dtype, COHORT_DTYPE_FLOAT32);
    assert_string_equal(name, "flat_output");
    assert_int_equal(num_axes, 1);
    assert_int_equal(shape[0], expected[i]);
    output = merged(group, COHORT_GROUP_OUTPUTS, 0);
    has_shape(output, expected[i]);
    cohort_ndarray_free(output);
    cohort_descs_free(shapes);
    cohort_group_free(group);
  }
}

/* Binds fc, whose output is that of a relu in the group "late". */
static cohort_error *try_late(const cohort_group_options *options, cohort_group **out_group) {
  cohort_symbol *late = node("relu", "r", ATTRS("__ctx_group__", "late"), INPUTS(linear("1")));

  return try_bind(out_group, late, 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), options);
}

/* Checks that the outputs of both devices are on these cpus. */
static void outputs_lie_on(cohort_group *group, int32_t first, int32_t second) {
  const int32_t expected[] = {first, second};
  size_t device;

  for (device = 0; device < 2; ++device) {
    cohort_ndarray *output = device_array(group, COHORT_GROUP_OUTPUTS, 0, device);
    cohort_context context = {0, -7};

    ok(cohort_ndarray_context(output, &context));
    assert_int_equal(context.device_id, expected[device]);
    cohort_ndarray_free(output);
  }
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  backward(group, floats(SHAPE(4, 1), FLOATS(1, 1, 1, 1)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 10, 12);
  cohort_group_free(group);
}

/* GRP-25, DIF-21: contexts for groups of nodes, the same for all devices or separate for each device. */
static void groups_of_nodes_go_where_each_device_has_them(void **state) {
  const char *const names[] = {"late", "other"};
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 4}, {COHORT_DEVICE_CPU, 5}};
  const cohort_context missing[] = {{0, 0}, {COHORT_DEVICE_CPU, 5}, {COHORT_DEVICE_CPU, 4}, {COHORT_DEVICE_CPU, 5}};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;

  (void)state;
  ok(try_late(NULL, &group));
  outputs_lie_on(group, test_contexts()[0].device_id, test_contexts()[1].device_id);
  options.ctx_group_names = names;
  options.ctx_group_contexts = contexts;
  options.num_ctx_groups = 1;
  ok(try_late(&options, &group));
  outputs_lie_on(group, 4, 4);
  options.contexts_per_ctx_group = 2;
  ok(try_late(&options, &group));
  outputs_lie_on(group, 4, 5);
  group = NULL;
  options.contexts_per_ctx_group = 3;
  fails(try_late(&options, &group), COHORT_ERROR_INVALID_ARGUMENT, "contexts_per_ctx_group");
  options.contexts_per_ctx_group = 2;
  options.ctx_group_contexts = missing; /* device 0's map has only "other" */
  options.num_ctx_groups = 2;
  fails(try_late(&options, &group), COHORT_ERROR_DEVICE, "'late'");
  assert_null(group);
}

static char warned[4][200];
static size_t num_warned;

static void note_warning(int32_t level, const char *message, void *user_data) {
  (void)user_data;
  if (level != COHORT_LOG_WARNING || num_warned == COUNT(warned)) return;
  strncpy(warned[num_warned++], message, sizeof(warned[0]) - 1);
}

/* GRP-07: names that have no effect are told with the nearest ones, as a warning or, with strict_names, an error. */
static void misspelt_names_are_told(void **state) {
  static const char *const fixed[] = {"fc_wieght"}, *const types[] = {"dato"}, *const requests[] = {"fc_bais"},
                           *const words[] = {"null"};
  static const int32_t dtypes[] = {COHORT_DTYPE_FLOAT32};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL, *other;

  (void)state;
  num_warned = 0;
  options.log = note_warning;
  options.fixed_param_names = fixed;
  options.num_fixed_param_names = 1;
  options.input_dtype_names = types;
  options.input_dtypes = dtypes;
  options.num_input_dtypes = 1;
  options.grad_req_names = requests;
  options.grad_req_list = words;
  options.num_grad_reqs = 1;
  group =
      bind_for_training(linear("2"), 1, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight", "fc_w"), &options);
  assert_int_equal(num_warned, 4);
  assert_string_equal(warned[0], "param_names: 'fc_w' is not among the arguments, and is ignored");
  assert_string_equal(warned[1],
                      "fixed_param_names: 'fc_wieght' is not among the parameters, and is ignored; the nearest name is "
                      "'fc_weight'");
  assert_non_null(strstr(warned[2], "grad_req_names: 'fc_bais' is not among the arguments"));
  assert_non_null(strstr(warned[3],
                         "input_dtype_names: 'dato' is not among the arguments, and is ignored; the nearest "
                         "name is 'data'"));
  options.shared_group = group; /* a bucket */
  other =
      bind_for_training(linear("2"), 1, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight", "fc_w"), &options);
  assert_int_equal(num_warned, 4);
  cohort_group_free(other);
  cohort_group_free(group);

  options.shared_group = NULL;
  options.strict_names = 1;
  fails(try_bind(&other, linear("2"), 1, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options),
        COHORT_ERROR_NAME,
        "fixed_param_names: 'fc_wieght' is not among the parameters; the nearest name is 'fc_weight'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_group_keeps_the_symbol_as_it_was),
      TEST(misspelt_names_are_told),
      TEST(parameters_have_the_order_of_the_arguments),
      TEST(given_argument_names_are_the_symbols),
      TEST(gradients_are_for_training),
      TEST(a_label_without_descriptor_is_a_zero),
      TEST(dtypes_of_inputs_have_an_order),
      TEST(dtypes_that_do_not_go_together_are_refused),
      TEST(all_arrays_start_at_zero),
      TEST(shapes_that_do_not_follow_are_named),
      TEST(names_that_come_twice_are_refused),
      TEST(messages_go_to_the_library_without_a_function),
      TEST(without_names_all_but_inputs_and_states_are_parameters),
      TEST(a_label_that_is_bound_to_nothing_is_a_warning),
      TEST(a_group_shows_all_its_arrays),
      TEST(the_arrays_shown_are_live),
      TEST(options_have_no_order),
      TEST(output_shapes_are_sums_over_the_devices),
      TEST(groups_of_nodes_go_where_each_device_has_them),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
