/* SPDX-License-Identifier: Apache-2.0 */
/* Managers: MGR-01 to MGR-13, MON-13. Every network here is fc_weight times the sum of a row. */
#include <stdio.h>

#include "support/group_tests.h"

static cohort_symbol *row_sum(void) {
  return node("sum", "total", ATTRS("axis", "1", "keepdims", "1"), INPUTS(variable("data")));
}

/* One number per row; frees the input. */
static cohort_symbol *layer(const char *name, cohort_symbol *input) {
  return node("FullyConnected", name, ATTRS("num_hidden", "1", "no_bias", "1"), INPUTS(input));
}

static cohort_symbol *loss(cohort_symbol *input) {
  return node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(input, variable("label")));
}

static cohort_symbol *network(void) { return loss(layer("fc", row_sum())); }

/* A manager on two devices of rows of four numbers. Frees the symbol. */
static cohort_error *try_manager(cohort_manager **out_manager, cohort_symbol *symbol, int64_t batch_size,
                                 const cohort_manager_options *options) {
  cohort_descs *data = desc("data", SHAPE(77, 4), "TN"), *label = desc("label", SHAPE(77, 1), NULL);
  cohort_error *error =
      cohort_manager_create(symbol, test_contexts(), 2, batch_size, data, label, NULL, 0, options, out_manager);

  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
  return error;
}

static cohort_error *try_set(cohort_manager *manager, const char *name, float value) {
  cohort_arrays *arrays = named(name, floats(SHAPE(1, 1), FLOATS(value)));
  cohort_error *error = cohort_manager_set_params(manager, arrays, NULL);

  cohort_arrays_free(arrays);
  return error;
}

/* A manager for a batch of five, with fc_weight = 2. */
static cohort_manager *manager_with(const cohort_manager_options *options) {
  cohort_manager *manager = NULL;

  ok(try_manager(&manager, network(), 5, options));
  ok(try_set(manager, "fc_weight", 2));
  return manager;
}

/* The bucket callback's calls: their number and the last key. */
typedef struct maker {
  int num_calls;
  char key[16];
} maker;

static int32_t make_symbol(const char *key, cohort_symbol **out_symbol, void *user_data) {
  maker *how = user_data;

  ++how->num_calls;
  snprintf(how->key, sizeof(how->key), "%s", key);
  assert_null(*out_symbol);
  if (strcmp(key, "refused") == 0) return 5;
  if (strcmp(key, "nothing") == 0) return 0;
  if (strcmp(key, "new parameter") == 0) {
    *out_symbol = loss(layer("other", row_sum()));
  } else if (strcmp(key, "other shape") == 0) {
    *out_symbol = loss(layer("fc", variable("data"))); /* its weight has a column for each number of a row */
  } else {
    *out_symbol = network();
  }
  return 0;
}

static cohort_manager *manager_with_callback(maker *how) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;

  memset(how, 0, sizeof(*how));
  options.default_bucket_key = "4";
  options.bucket_symbol = make_symbol;
  options.bucket_symbol_user_data = how;
  return manager_with(&options);
}

/* Loads rows of `length` numbers, 0, 1, 2, ..., with zeros for labels. */
static cohort_error *try_load(cohort_manager *manager, const char *key, int64_t batch_size, int64_t length) {
  cohort_ndarray *data = counted(SHAPE(batch_size, length), 1), *label = counted(SHAPE(batch_size, 1), 0);
  cohort_descs *data_descs = desc("data", SHAPE(1, length), NULL), *label_descs = desc("label", SHAPE(1, 1), NULL);
  cohort_error *error = cohort_manager_load_data_batch(manager, &data, 1, &label, 1, key, data_descs, label_descs);

  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_descs_free(data_descs);
  cohort_descs_free(label_descs);
  return error;
}

static void load(cohort_manager *manager, const char *key, int64_t length) { ok(try_load(manager, key, 5, length)); }

static cohort_ndarray *output(const cohort_manager *manager) {
  cohort_ndarray *array = NULL;

  ok(cohort_manager_merged(manager, COHORT_GROUP_OUTPUTS, 0, &array));
  return array;
}

static cohort_ndarray *manager_array(const cohort_manager *manager, int32_t list, size_t device) {
  cohort_ndarray *array = NULL;

  ok(cohort_manager_array(manager, list, 0, device, &array));
  return array;
}

static size_t num_buckets(const cohort_manager *manager) {
  size_t num = 77;

  ok(cohort_manager_num_buckets(manager, &num));
  return num;
}

/* MGR-05: the callback is asked once for each key, never for the default one; the bucket of the batch loaded last
 * runs. */
static void a_bucket_is_made_once(void **state) {
  maker how;
  cohort_manager *manager = manager_with_callback(&how);

  (void)state;
  load(manager, "4", 4);
  ok(cohort_manager_forward(manager, 0));
  holds_free(output(manager), 12, 44, 76, 108, 140);
  assert_int_equal(how.num_calls, 0);
  load(manager, "2", 2);
  assert_int_equal(how.num_calls, 1);
  assert_string_equal(how.key, "2");
  ok(cohort_manager_forward(manager, 1));
  holds_free(output(manager), 2, 10, 18, 26, 34);
  load(manager, "4", 4);
  load(manager, "2", 2);
  assert_int_equal(how.num_calls, 1);
  assert_int_equal(num_buckets(manager), 2);
  cohort_manager_free(manager);
}

/* MGR-05: the buckets made so far, by key; the default one's group is the main group. */
static void buckets_are_read_by_index(void **state) {
  maker how;
  cohort_manager *manager = manager_with_callback(&how);
  cohort_group *group = NULL, *main_group = NULL;
  cohort_ndarray *array;
  const char *key = NULL;

  (void)state;
  ok(cohort_manager_bucket(manager, 0, &key, NULL));
  assert_string_equal(key, "4");
  load(manager, "2", 2);
  ok(cohort_manager_bucket(manager, 0, &key, &group));
  assert_string_equal(key, "2");
  array = device_array(group, COHORT_GROUP_DATA, 0, 0);
  has_shape(array, 2, 2);
  cohort_ndarray_free(array);
  cohort_group_free(group);
  ok(cohort_manager_bucket(manager, 1, &key, &group));
  assert_string_equal(key, "4");
  ok(cohort_manager_main_group(manager, &main_group));
  fill(device_array(main_group, COHORT_GROUP_DATA, 0, 0), 3);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 3, 3, 3, 3, 3, 3, 3, 3);
  cohort_group_free(group);
  cohort_group_free(main_group);
  group = NULL;
  fails(cohort_manager_bucket(manager, 2, &key, &group), COHORT_ERROR_INVALID_ARGUMENT, "2");
  assert_null(group);
  assert_string_equal(key, "4");
  cohort_manager_free(manager);
}

/* MGR-05: symbols may be given in advance; without a callback there are no others. */
static void symbols_are_given_ahead(void **state) {
  const char *const keys[] = {"4", "3"};
  cohort_symbol *symbols[2];
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager;

  (void)state;
  symbols[0] = network();
  symbols[1] = network();
  options.default_bucket_key = "4";
  options.bucket_keys = keys;
  options.bucket_symbols = symbols;
  options.num_buckets = 2;
  manager = manager_with(&options);
  cohort_symbol_free(symbols[0]);
  cohort_symbol_free(symbols[1]);
  load(manager, "3", 3);
  ok(cohort_manager_forward(manager, 0));
  holds_free(output(manager), 6, 24, 42, 60, 78);
  fails(try_load(manager, "2", 5, 2), COHORT_ERROR_NAME, "'2'");
  assert_int_equal(num_buckets(manager), 2);
  cohort_manager_free(manager);
}

/* MGR-04, MGR-10: an update in one bucket is visible in all, on every device. */
static void parameters_are_those_of_all_buckets(void **state) {
  const char *const key = "learning_rate", *const value = "0.01";
  maker how;
  cohort_manager *manager = manager_with_callback(&how);
  cohort_optimizer *optimizer = NULL;
  cohort_arrays *targets = named("fc_weight", floats(SHAPE(1, 1), FLOATS(0)));
  cohort_group *current = NULL;
  cohort_ndarray *found = NULL;

  (void)state;
  ok(cohort_optimizer_create("sgd", &key, &value, 1, &optimizer));
  load(manager, "1", 1);
  ok(cohort_manager_forward(manager, 1));
  ok(cohort_manager_backward(manager));
  /* The gradient is the sum of row * (weight * row) over 0, 1, 2, 3, 4, of which device 0 has the first two. */
  holds_free(manager_array(manager, COHORT_GROUP_GRADS, 0), 2);
  holds_free(manager_array(manager, COHORT_GROUP_GRADS, 1), 58);
  ok(cohort_manager_update(manager, optimizer, COHORT_UPDATE_ON_STORE));
  holds_free(manager_array(manager, COHORT_GROUP_PARAMS, 1), 1.4f);
  ok(cohort_manager_current_group(manager, &current));
  holds_free(device_array(current, COHORT_GROUP_PARAMS, 0, 1), 1.4f);
  ok(cohort_manager_copy_to(manager, targets, NULL));
  ok(cohort_arrays_get(targets, 0, &found));
  holds_free(found, 1.4f);
  load(manager, "4", 4);
  ok(cohort_manager_forward(manager, 0));
  holds_free(output(manager), 8.4f, 30.8f, 53.2f, 75.6f, 98);
  cohort_group_free(current);
  cohort_arrays_free(targets);
  cohort_optimizer_free(optimizer);
  cohort_manager_free(manager);
}

/* MGR-08: before the first batch nothing runs, and only parameters can be read. */
static void nothing_runs_before_a_batch_is_loaded(void **state) {
  cohort_manager *manager = manager_with(NULL);
  cohort_optimizer *optimizer = NULL;
  cohort_metric *metric = NULL;
  cohort_group *group = NULL;
  cohort_ndarray *array = NULL;
  cohort_arrays *arrays = NULL;
  const char *name = NULL;
  size_t num = 0;

  (void)state;
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  ok(cohort_metric_create("mse", NULL, NULL, 0, &metric));
  fails(cohort_manager_forward(manager, 0), COHORT_ERROR_STATE, "no batch");
  fails(cohort_manager_backward(manager), COHORT_ERROR_STATE, "no batch");
  fails(cohort_manager_update(manager, optimizer, COHORT_UPDATE_ON_STORE), COHORT_ERROR_STATE, "no batch");
  fails(cohort_manager_update_metric(manager, metric, NULL, 0), COHORT_ERROR_STATE, "no batch");
  fails(cohort_manager_update_metric_presliced(manager, metric, 2, NULL, 0), COHORT_ERROR_STATE, "no batch");
  fails(cohort_manager_current_group(manager, &group), COHORT_ERROR_STATE, "no batch");
  fails(cohort_manager_num_arrays(manager, COHORT_GROUP_OUTPUTS, &num), COHORT_ERROR_STATE, "no batch");
  fails(cohort_manager_array(manager, COHORT_GROUP_OUTPUTS, 0, 0, &array), COHORT_ERROR_STATE, "no batch");
  assert_null(group);
  assert_null(array);
  ok(cohort_manager_num_arrays(manager, COHORT_GROUP_PARAMS, &num));
  assert_int_equal(num, 1);
  ok(cohort_manager_name(manager, COHORT_GROUP_PARAMS, 0, &name));
  assert_string_equal(name, "fc_weight");
  ok(cohort_manager_arrays(manager, COHORT_GROUP_PARAMS, 1, &arrays));
  ok(cohort_arrays_get(arrays, 0, &array));
  holds_free(array, 2);
  cohort_arrays_free(arrays);
  cohort_optimizer_free(optimizer);
  cohort_metric_free(metric);
  cohort_manager_free(manager);
}

/* MGR-07: a batch of another size is refused before its bucket is made; the current bucket stays. */
static void a_batch_of_another_size_changes_nothing(void **state) {
  maker how;
  cohort_manager *manager = manager_with_callback(&how);

  (void)state;
  load(manager, "4", 4);
  fails(try_load(manager, "2", 6, 2), COHORT_ERROR_SHAPE, "expected 5 samples");
  assert_int_equal(how.num_calls, 0);
  assert_int_equal(num_buckets(manager), 1);
  ok(cohort_manager_forward(manager, 0));
  holds_free(output(manager), 12, 44, 76, 108, 140);
  cohort_manager_free(manager);
}

/* MGR-06, MGR-07, MGR-12: a batch without key, descriptors or matching symbol makes no bucket. */
static void a_bucket_that_cannot_be_made_is_not_kept(void **state) {
  maker how;
  cohort_manager *manager = manager_with_callback(&how);
  cohort_ndarray *data = counted(SHAPE(5, 2), 1), *two[2];
  cohort_descs *descs;

  (void)state;
  fails(try_load(manager, NULL, 5, 2), COHORT_ERROR_INVALID_ARGUMENT, "bucket key");
  fails(cohort_manager_load_data_batch(manager, &data, 1, NULL, 0, "2", NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "'2' is new");
  assert_int_equal(how.num_calls, 0);
  fails(try_load(manager, "refused", 5, 2), COHORT_ERROR_EXECUTION, "returned 5");
  fails(try_load(manager, "nothing", 5, 2), COHORT_ERROR_INVALID_ARGUMENT, "symbol of the bucket");
  fails(try_load(manager, "new parameter", 5, 2), COHORT_ERROR_NAME, "other_weight");
  fails(try_load(manager, "other shape", 5, 2), COHORT_ERROR_SHAPE, "fc_weight");
  assert_int_equal(how.num_calls, 4);
  assert_int_equal(num_buckets(manager), 1);
  fails(cohort_manager_forward(manager, 0), COHORT_ERROR_STATE, "no batch");
  load(manager, "4", 4);
  fails(try_load(manager, "other shape", 5, 2), COHORT_ERROR_SHAPE, "fc_weight");
  descs = desc("data", SHAPE(5, 2), NULL);
  two[0] = two[1] = data; /* the symbol is valid, the batch is not: there is one descriptor */
  fails(cohort_manager_load_data_batch(manager, two, 2, NULL, 0, "3", descs, NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "expected 1 array,");
  cohort_descs_free(descs);
  ok(cohort_manager_forward(manager, 0)); /* the current bucket stays */
  holds_free(output(manager), 12, 44, 76, 108, 140);
  assert_int_equal(num_buckets(manager), 1);
  cohort_ndarray_free(data);
  cohort_manager_free(manager);
}

/* The sum of two layers on the same rows, in either order. */
static cohort_symbol *two_layers(const char *first, const char *second) {
  cohort_symbol *total = row_sum(), *again = NULL;

  ok(cohort_symbol_copy(total, &again));
  return loss(node("elemwise_add", "both", NO_ATTRS, INPUTS(layer(first, total), layer(second, again))));
}

/* MGR-09: a bucket may order its arguments otherwise; parameters are paired by name. */
static void parameters_are_paired_by_name(void **state) {
  const char *const key = "1";
  cohort_symbol *symbol = two_layers("other", "fc");
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager = NULL;
  cohort_group *group = NULL;
  const char *name = NULL;

  (void)state;
  options.default_bucket_key = "4";
  options.bucket_keys = &key;
  options.bucket_symbols = &symbol;
  options.num_buckets = 1;
  ok(try_manager(&manager, two_layers("fc", "other"), 5, &options));
  ok(try_set(manager, "fc_weight", 1));
  ok(try_set(manager, "other_weight", 10));
  load(manager, "1", 1);
  ok(cohort_manager_current_group(manager, &group));
  ok(cohort_group_name(group, COHORT_GROUP_PARAMS, 0, &name));
  assert_string_equal(name, "other_weight");
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 10);
  ok(cohort_manager_name(manager, COHORT_GROUP_PARAMS, 0, &name));
  assert_string_equal(name, "fc_weight");
  holds_free(manager_array(manager, COHORT_GROUP_PARAMS, 1), 1);
  cohort_group_free(group);
  cohort_symbol_free(symbol);
  cohort_manager_free(manager);
}

static void count_messages(int32_t level, const char *message, void *user_data) {
  if (level == COHORT_LOG_INFO && strstr(message, context_names(2))) ++*(int *)user_data;
}

/* MGR-01, MGR-03: contexts are logged, halves round to even, axis 0 is sliced whatever the layout, and only parameters
 * have gradients. */
static void a_batch_is_split_along_axis_0(void **state) {
  const double workload[] = {3, 2};
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager;
  int64_t begin = 0, end = 0;
  int num_messages = 0;
  size_t num = 0;
  cohort_group *group = NULL;
  cohort_executor *executor = NULL;
  cohort_ndarray *array = NULL;

  (void)state;
  options.log = count_messages;
  options.log_user_data = &num_messages;
  manager = manager_with(&options);
  assert_int_equal(num_messages, 1);
  ok(cohort_manager_num_contexts(manager, &num));
  assert_int_equal(num, 2);
  ok(cohort_manager_slice(manager, 1, &begin, &end));
  assert_int_equal(begin, 2);
  assert_int_equal(end, 5);
  fails(cohort_manager_slice(manager, 2, &begin, &end), COHORT_ERROR_INVALID_ARGUMENT, "device");
  ok(cohort_manager_main_group(manager, &group));
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_executor_array_named(executor, COHORT_EXECUTOR_ARGS, "data", &array));
  has_shape(array, 2, 4);
  cohort_ndarray_free(array);
  ok(cohort_executor_array_named(executor, COHORT_EXECUTOR_GRADS, "data", &array));
  assert_null(array);
  cohort_executor_free(executor);
  cohort_group_free(group);
  cohort_manager_free(manager);
  options.workload = workload;
  options.num_workloads = 2;
  manager = manager_with(&options);
  ok(cohort_manager_slice(manager, 1, &begin, &end));
  assert_int_equal(begin, 3);
  cohort_manager_free(manager);
}

/* MGR-08: the metric is updated once per device, with that device's outputs. */
static void a_metric_is_updated_device_by_device(void **state) {
  cohort_manager *manager = manager_with(NULL);
  cohort_metric *metric = NULL;
  cohort_ndarray *whole = counted(SHAPE(5, 1), 0);
  cohort_ndarray *parts[2];
  double found = 0;

  (void)state;
  parts[0] = counted(SHAPE(2, 1), 0);
  parts[1] = counted(SHAPE(3, 1), 0);
  ok(cohort_metric_create("mae", NULL, NULL, 0, &metric));
  load(manager, NULL, 4);
  ok(cohort_manager_forward(manager, 0));
  ok(cohort_manager_update_metric(manager, metric, &whole, 1));
  ok(cohort_metric_value(metric, 0, 0, NULL, &found));
  assert_true(found == (28 + 108) / 2.0); /* the mean of each device's mean */
  ok(cohort_metric_reset(metric));
  ok(cohort_manager_update_metric_presliced(manager, metric, 2, parts, 1));
  ok(cohort_metric_value(metric, 0, 0, NULL, &found));
  assert_true(found == (28 + 108) / 2.0);
  fails(cohort_manager_update_metric_presliced(manager, metric, 1, parts, 1), COHORT_ERROR_INVALID_ARGUMENT,
        "num_slices");
  cohort_ndarray_free(whole);
  cohort_ndarray_free(parts[0]);
  cohort_ndarray_free(parts[1]);
  cohort_metric_free(metric);
  cohort_manager_free(manager);
}

static void count_calls(const char *name, cohort_ndarray *array, void *user_data) {
  (void)name;
  (void)array;
  ++*(int *)user_data;
}

/* MGR-05, MGR-11: without bucket symbols keys are ignored; a monitor sees all devices. */
static void one_network_reads_no_keys_and_can_be_monitored(void **state) {
  cohort_manager *manager = manager_with(NULL);
  cohort_monitor *monitor = NULL;
  size_t num = 0;
  int num_calls = 0;

  (void)state;
  assert_int_equal(num_buckets(manager), 0);
  ok(cohort_monitor_create(1, NULL, &monitor));
  ok(cohort_monitor_install_on_manager(monitor, manager));
  load(manager, "any", 4);
  ok(cohort_monitor_tic(monitor));
  ok(cohort_manager_forward(manager, 0));
  ok(cohort_monitor_toc(monitor, &num));
  assert_int_equal(num, 2 * (3 + 3)); /* on each device three operators and three arguments */
  ok(cohort_manager_set_monitor(manager, count_calls, &num_calls, 0));
  ok(cohort_manager_forward(manager, 0));
  assert_int_equal(num_calls, 2 * 3);
  cohort_monitor_free(monitor);
  cohort_manager_free(manager);
}

/* MON-13: a manager with bucket symbols refuses a monitor. */
static void a_manager_with_buckets_has_no_monitor(void **state) {
  maker how;
  cohort_manager *manager = manager_with_callback(&how);
  cohort_monitor *monitor = NULL;
  size_t num = 77;

  (void)state;
  ok(cohort_monitor_create(1, NULL, &monitor));
  fails(cohort_monitor_install_on_manager(monitor, manager), COHORT_ERROR_UNSUPPORTED, "not supported");
  fails(cohort_manager_set_monitor(manager, count_calls, &num, 0), COHORT_ERROR_UNSUPPORTED, "not supported");
  ok(cohort_monitor_tic(monitor));
  ok(cohort_monitor_toc(monitor, &num));
  assert_int_equal(num, 0);
  cohort_monitor_free(monitor);
  cohort_manager_free(manager);
}

/* MGR-10: set_params and copy_to know the parameters by name. */
static void unknown_parameters_are_refused(void **state) {
  cohort_manager *manager = manager_with(NULL);
  cohort_arrays *none = NULL;

  (void)state;
  fails(try_set(manager, "strange", 1), COHORT_ERROR_NAME, "strange");
  ok(cohort_arrays_create(&none));
  fails(cohort_manager_copy_to(manager, none, NULL), COHORT_ERROR_NAME, "fc_weight");
  cohort_arrays_free(none);
  cohort_manager_free(manager);
}

/* MGR-01, MGR-02, DSC-12, GRP-26: arguments are checked when a manager is created, and a failure leaves nothing
 * behind. */
static void wrong_settings_are_refused(void **state) {
  const double workload[] = {1, 1, 1};
  const char *const keys[] = {"2", "2"};
  cohort_symbol *symbols[2];
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT, made;
  cohort_manager *manager = NULL;
  cohort_descs *data = desc("data", SHAPE(5, 4), NULL);
  maker how;

  (void)state;
  cohort_manager_options_init(&made, sizeof(made));
  assert_memory_equal(&made, &options, sizeof(made));
  fails(try_manager(&manager, network(), 0, NULL), COHORT_ERROR_INVALID_ARGUMENT, "batch");
  fails(try_manager(&manager, network(), 1, NULL), COHORT_ERROR_INVALID_ARGUMENT, "2 contexts");
  fails(try_manager(&manager, two_layers("fc", "fc"), 5, NULL), COHORT_ERROR_NAME, "fc_weight");
  options.workload = workload;
  options.num_workloads = 3;
  fails(try_manager(&manager, network(), 5, &options), COHORT_ERROR_INVALID_ARGUMENT,
        "for each of 2 contexts, found 3");
  options.workload = NULL;
  options.num_workloads = 0;
  options.num_threads = -1;
  fails(try_manager(&manager, network(), 5, &options), COHORT_ERROR_INVALID_ARGUMENT, "num_threads");
  options.num_threads = 0;
  options.bucket_symbol = make_symbol;
  options.bucket_symbol_user_data = &how;
  fails(try_manager(&manager, network(), 5, &options), COHORT_ERROR_INVALID_ARGUMENT, "default_bucket_key");
  options.default_bucket_key = "4";
  symbols[0] = symbols[1] = network();
  options.bucket_keys = keys;
  options.bucket_symbols = symbols;
  options.num_buckets = 2;
  fails(try_manager(&manager, network(), 5, &options), COHORT_ERROR_NAME, "given twice");
  cohort_symbol_free(symbols[0]);
  fails(try_manager(&manager, network(), 5, &options), COHORT_ERROR_INVALID_ARGUMENT, "bucket_symbols");
  options.bucket_symbols = NULL;
  fails(try_manager(&manager, network(), 5, &options), COHORT_ERROR_INVALID_ARGUMENT, "bucket_symbols");
  fails(cohort_manager_create(NULL, test_contexts(), 2, 5, data, NULL, NULL, 0, NULL, &manager),
        COHORT_ERROR_INVALID_ARGUMENT, "symbol");
  assert_null(manager);
  cohort_descs_free(data);
  fails(cohort_manager_forward(NULL, 0), COHORT_ERROR_INVALID_ARGUMENT, "manager");
  cohort_manager_free(NULL);
}

/* A group handle outlives its manager, and a monitor keeps the groups that it watches alive. */
static void handles_are_freed_in_any_order(void **state) {
  cohort_manager *manager = manager_with(NULL);
  cohort_monitor *monitor = NULL;
  cohort_group *group = NULL;
  size_t num = 0;

  (void)state;
  load(manager, NULL, 4);
  ok(cohort_manager_current_group(manager, &group));
  ok(cohort_monitor_create(1, NULL, &monitor));
  ok(cohort_monitor_install_on_manager(monitor, manager));
  cohort_manager_free(manager);
  ok(cohort_monitor_tic(monitor));
  ok(cohort_group_run(group, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 12, 44, 76, 108, 140);
  cohort_group_free(group);
  ok(cohort_monitor_toc(monitor, &num));
  assert_int_equal(num, 2 * (3 + 3));
  cohort_monitor_free(monitor);
}

/* A manager reports missing parameters, too. */
static void parameters_that_are_missing_are_told(void **state) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager = manager_with(&options);
  cohort_arrays *none = NULL;
  cohort_descs *missing = NULL;
  size_t num = 0;

  (void)state;
  ok(cohort_arrays_create(&none));
  fails(cohort_manager_assign_params(manager, none, NULL, 0, 0, &missing), COHORT_ERROR_NAME, "fc_weight");
  ok(cohort_manager_assign_params(manager, none, NULL, 1, 0, &missing));
  ok(cohort_descs_num(missing, &num));
  assert_true(num > 0);
  cohort_descs_free(missing);
  cohort_arrays_free(none);
  cohort_manager_free(manager);
}

/* MGR-01: a parameter that the symbol lacks is most often misspelt. */
static void a_misspelt_parameter_is_refused(void **state) {
  const char *const names[] = {"fc_wieght"};
  cohort_descs *data = desc("data", SHAPE(77, 4), "TN"), *label = desc("label", SHAPE(77, 1), NULL);
  cohort_symbol *symbol = network();
  cohort_manager *manager = NULL;

  (void)state;
  fails(cohort_manager_create(symbol, test_contexts(), 2, 5, data, label, names, 1, NULL, &manager), COHORT_ERROR_NAME,
        "param_names: 'fc_wieght' is not among the arguments; the nearest name is 'fc_weight'");
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_misspelt_parameter_is_refused),
      TEST(a_bucket_is_made_once),
      TEST(buckets_are_read_by_index),
      TEST(symbols_are_given_ahead),
      TEST(parameters_are_those_of_all_buckets),
      TEST(nothing_runs_before_a_batch_is_loaded),
      TEST(a_batch_of_another_size_changes_nothing),
      TEST(a_bucket_that_cannot_be_made_is_not_kept),
      TEST(parameters_are_paired_by_name),
      TEST(a_batch_is_split_along_axis_0),
      TEST(a_metric_is_updated_device_by_device),
      TEST(one_network_reads_no_keys_and_can_be_monitored),
      TEST(a_manager_with_buckets_has_no_monitor),
      TEST(unknown_parameters_are_refused),
      TEST(wrong_settings_are_refused),
      TEST(handles_are_freed_in_any_order),
      TEST(parameters_that_are_missing_are_told),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
