/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of a manager: how they are bound (MGR-02, MGR-03), what they share (MGR-04, MGR-13), and that only the
 * manager binds them. */
#include "support/executor_tests.h"

static const char *const params[] = {"fc_weight"};

/* One number per row of any length: fc_weight times the sum of the row, against label. */
static cohort_symbol *network(void) {
  cohort_symbol *total = node("sum", "total", ATTRS("axis", "1", "keepdims", "1"), INPUTS(variable("data")));
  cohort_symbol *fc = node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "1"), INPUTS(total));

  return node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(fc, variable("label")));
}

static int32_t any_length(const char *key, cohort_symbol **out_symbol, void *user_data) {
  (void)key;
  (void)user_data;
  *out_symbol = network();
  return 0;
}

static cohort_error *try_manager(cohort_manager **out_manager, cohort_symbol *symbol, cohort_descs *data,
                                 const cohort_manager_options *options) {
  cohort_descs *label = desc("label", SHAPE(4, 1), NULL);
  cohort_error *error =
      cohort_manager_create(symbol, test_contexts(), 2, 4, data, label, params, 1, options, out_manager);

  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
  return error;
}

/* A manager with buckets of any length; the main one, "4", has rows of four. */
static cohort_manager *bucketing(cohort_manager_options *options) {
  cohort_manager *manager = NULL;
  cohort_arrays *weight = named("fc_weight", floats(SHAPE(1, 1), FLOATS(1)));

  options->default_bucket_key = "4";
  options->bucket_symbol = any_length;
  ok(try_manager(&manager, network(), desc("data", SHAPE(4, 4), NULL), options));
  ok(cohort_manager_set_params(manager, weight, NULL));
  cohort_arrays_free(weight);
  return manager;
}

/* Rows 0, 1, ..., continuing from row to row. */
static void load(cohort_manager *manager, const char *key, int64_t length) {
  cohort_ndarray *data = counted(SHAPE(4, length), 1), *label = counted(SHAPE(4, 1), 0);
  cohort_descs *data_descs = desc("data", SHAPE(4, length), NULL), *label_descs = desc("label", SHAPE(4, 1), NULL);

  ok(cohort_manager_load_data_batch(manager, &data, 1, &label, 1, key, data_descs, label_descs));
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_descs_free(data_descs);
  cohort_descs_free(label_descs);
}

static cohort_ndarray *output(const cohort_manager *manager) {
  cohort_ndarray *array = NULL;

  ok(cohort_manager_merged(manager, COHORT_GROUP_OUTPUTS, 0, &array));
  return array;
}

/* The executor of one device of the current group. */
static cohort_executor *current(const cohort_manager *manager, size_t device) {
  cohort_group *group = NULL;
  cohort_executor *executor = NULL;

  ok(cohort_manager_current_group(manager, &group));
  ok(cohort_group_executor(group, device, &executor));
  cohort_group_free(group);
  return executor;
}

static void count_calls(const char *name, cohort_ndarray *array, void *user_data) {
  (void)name;
  (void)array;
  ++*(int *)user_data;
}

/* A manager's groups, the main one and a bucket alike, can be neither bound nor reshaped by the caller, and stay as
 * they were; a monitor, and a group of the caller's that shares with one of them, are allowed. */
static void only_the_manager_binds_its_groups(void **state) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager = bucketing(&options);
  cohort_descs *data = desc("data", SHAPE(6, 4), NULL), *label = desc("label", SHAPE(6, 1), NULL);
  cohort_group *handles[2] = {NULL, NULL}, *own = NULL;
  cohort_group_options shared = COHORT_GROUP_OPTIONS_INIT;
  int64_t batch_size = 0;
  int num_calls = 0;
  size_t i;

  (void)state;
  load(manager, "2", 2);
  ok(cohort_manager_main_group(manager, &handles[0]));
  ok(cohort_manager_current_group(manager, &handles[1]));
  for (i = 0; i < 2; ++i) {
    cohort_error *error = cohort_group_bind(handles[i], data, label, NULL, 1);

    assert_int_equal(cohort_error_code(error), COHORT_ERROR_STATE);
    assert_string_equal(cohort_error_subject(error), "group");
    assert_non_null(strstr(cohort_error_message(error), "manager"));
    cohort_error_free(error);
    fails(cohort_group_bind(handles[i], data, label, NULL, 0), COHORT_ERROR_STATE, "rebind");
    fails(cohort_group_reshape(handles[i], data, label), COHORT_ERROR_STATE, "manager");
    ok(cohort_group_batch_size(handles[i], &batch_size));
    assert_int_equal(batch_size, 4);
  }
  ok(cohort_group_set_monitor(handles[1], count_calls, &num_calls, 0));
  ok(cohort_manager_forward(manager, 0));
  holds_free(output(manager), 1, 5, 9, 13);
  assert_int_equal(num_calls, 2 * 3); /* on each device three operators */
  load(manager, "4", 4);
  ok(cohort_manager_forward(manager, 0));
  holds_free(output(manager), 6, 22, 38, 54);
  shared.shared_group = handles[0];
  own = bind_for_training(network(), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                          NAMES("fc_weight"), &shared);
  ok(cohort_group_reshape(own, data, label));
  cohort_group_free(own);
  cohort_group_free(handles[0]);
  cohort_group_free(handles[1]);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_manager_free(manager);
}

/* MGR-02: arguments or auxiliary states of the same name are refused; the error lists all of them. */
static void names_that_come_twice_are_listed(void **state) {
  cohort_symbol *parts[2], *twice = NULL;
  cohort_manager *manager = NULL;
  cohort_error *error;
  size_t i;

  (void)state;
  for (i = 0; i < 2; ++i) {
    parts[i] = node("FullyConnected", "fc", ATTRS("num_hidden", "1"), INPUTS(variable("data")));
  }
  ok(cohort_symbol_group(parts, 2, &twice));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  error = try_manager(&manager, twice, desc("data", SHAPE(4, 4), NULL), NULL);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_NAME);
  assert_non_null(strstr(cohort_error_message(error), "arguments"));
  assert_non_null(strstr(cohort_error_message(error), "'data', 'fc_weight', 'fc_bias'"));
  cohort_error_free(error);
  for (i = 0; i < 2; ++i) {
    parts[i] = node("BatchNorm", i ? "second" : "first", NO_ATTRS,
                    INPUTS(variable(i ? "x" : "data"), variable(i ? "g1" : "g0"), variable(i ? "b1" : "b0"),
                           variable("mean"), variable(i ? "v1" : "v0")));
  }
  ok(cohort_symbol_group(parts, 2, &twice));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  fails(try_manager(&manager, twice, desc("data", SHAPE(4, 4), NULL), NULL), COHORT_ERROR_NAME,
        "auxiliary states: expected names that differ, found twice: 'mean'");
  assert_null(manager);
}

/* MGR-03: only parameters have gradients, "write": inputs and other arguments have none; dtypes are the descriptors'; a
 * descriptor that names no argument is refused. */
static void parameters_alone_have_gradients(void **state) {
  cohort_symbol *fc = node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "1"), INPUTS(variable("data")));
  cohort_symbol *shifted =
      node("broadcast_add", "shifted", NO_ATTRS, INPUTS(fc, variable_with("other", "__shape__", "(1, 1)")));
  cohort_symbol *loss = node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(shifted, variable("label")));
  cohort_descs *data = no_descs(), *label = no_descs();
  cohort_manager *manager = NULL;
  cohort_group *group = NULL;
  cohort_executor *executor = NULL;
  static const char *const args[] = {"data", "fc_weight", "other", "label"};
  int32_t req = -1;
  size_t i;

  (void)state;
  add_typed(data, "data", SHAPE(4, 2), COHORT_DTYPE_FLOAT64);
  add_typed(label, "label", SHAPE(4, 1), COHORT_DTYPE_FLOAT64);
  ok(cohort_manager_create(loss, test_contexts(), 2, 4, data, label, params, 1, NULL, &manager));
  ok(cohort_manager_main_group(manager, &group));
  ok(cohort_group_executor(group, 1, &executor));
  for (i = 0; i < 4; ++i) {
    cohort_ndarray *array = arg_of(executor, args[i]), *grad = grad_of(executor, args[i]);

    assert_int_equal(dtype_of(array), COHORT_DTYPE_FLOAT64);
    cohort_ndarray_free(array);
    ok(cohort_executor_grad_req(executor, i, &req));
    assert_int_equal(req, i == 1 ? COHORT_GRAD_WRITE : COHORT_GRAD_NULL);
    assert_int_equal(grad != NULL, i == 1);
    cohort_ndarray_free(grad);
  }
  cohort_executor_free(executor);
  cohort_group_free(group);
  cohort_manager_free(manager);
  manager = NULL;
  cohort_descs_free(data);
  data = desc("strange", SHAPE(4, 2), NULL);
  fails(cohort_manager_create(loss, test_contexts(), 2, 4, data, label, params, 1, NULL, &manager), COHORT_ERROR_NAME,
        "strange");
  assert_null(manager);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_symbol_free(loss);
}

static void count_warnings(int32_t level, const char *message, void *user_data) {
  if (level == COHORT_LOG_WARNING && strstr(message, "'data'") && strstr(message, "largest bucket first")) {
    ++*(int *)user_data;
  }
}

/* MGR-13: a bucket's inputs use the main group's memory if that is large enough; a larger bucket allocates its own and
 * warns; earlier groups keep theirs. MGR-04: parameters and gradients are the same arrays in all. */
static void buckets_share_the_inputs_of_the_main_group(void **state) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  int warnings = 0;
  cohort_manager *manager;
  cohort_executor *main_device, *bucket;

  (void)state;
  options.log = count_warnings;
  options.log_user_data = &warnings;
  manager = bucketing(&options);
  load(manager, "4", 4);
  main_device = current(manager, 1);
  load(manager, "2", 2);
  bucket = current(manager, 1);
  assert_ptr_equal(address_free(arg_of(bucket, "data")), address_free(arg_of(main_device, "data")));
  assert_ptr_equal(address_free(arg_of(bucket, "label")), address_free(arg_of(main_device, "label")));
  assert_ptr_equal(address_free(arg_of(bucket, "fc_weight")), address_free(arg_of(main_device, "fc_weight")));
  assert_ptr_equal(address_free(grad_of(bucket, "fc_weight")), address_free(grad_of(main_device, "fc_weight")));
  assert_int_equal(warnings, 0);
  cohort_executor_free(bucket);
  load(manager, "6", 6);
  assert_int_equal(warnings, 2); /* once per device */
  bucket = current(manager, 1);
  assert_ptr_not_equal(address_free(arg_of(bucket, "data")), address_free(arg_of(main_device, "data")));
  ok(cohort_manager_forward(manager, 0));
  holds_free(output(manager), 15, 51, 87, 123);
  load(manager, "4", 4);
  ok(cohort_manager_forward(manager, 0));
  holds_free(output(manager), 6, 22, 38, 54);
  cohort_executor_free(bucket);
  cohort_executor_free(main_device);
  cohort_manager_free(manager);
}

/* MGR-10, PRM-10: copy_to writes the mean over the devices into the caller's arrays, cast to their dtype; extra ones
 * stay, a missing one is named, and set_params accepts no other names. */
static void parameters_are_copied_to_the_callers_arrays(void **state) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager = bucketing(&options);
  cohort_arrays *targets = NULL, *extra = named("fc_weight", floats(SHAPE(1, 1), FLOATS(8)));
  cohort_ndarray *weight = NULL, *array = NULL;
  double found = 0;

  (void)state;
  ok(cohort_manager_array(manager, COHORT_GROUP_PARAMS, 0, 1, &array));
  fill(array, 4); /* on the other device it is 1 */
  ok(cohort_ndarray_zeros(SHAPE(1, 1), COHORT_DTYPE_FLOAT64, NULL, &weight));
  ok(cohort_arrays_create(&targets));
  ok(cohort_arrays_add(targets, "fc_weight", weight));
  add_named(targets, "more", floats(SHAPE(1), FLOATS(77)));
  ok(cohort_manager_copy_to(manager, targets, NULL));
  ok(cohort_ndarray_read(weight, &found, sizeof(found)));
  assert_true(found == 2.5);
  ok(cohort_arrays_get(targets, 1, &array));
  holds_free(array, 77);
  add_named(extra, "more", floats(SHAPE(1), FLOATS(9)));
  fails(cohort_manager_set_params(manager, extra, NULL), COHORT_ERROR_NAME, "'more'");
  ok(cohort_manager_array(manager, COHORT_GROUP_PARAMS, 0, 0, &array));
  holds_free(array, 1);
  cohort_ndarray_free(weight);
  cohort_arrays_free(targets);
  cohort_arrays_free(extra);
  cohort_manager_free(manager);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(only_the_manager_binds_its_groups),
      TEST(names_that_come_twice_are_listed),
      TEST(parameters_alone_have_gradients),
      TEST(buckets_share_the_inputs_of_the_main_group),
      TEST(parameters_are_copied_to_the_callers_arrays),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
