/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors: MON-06 to MON-12. */
#include "support/group_tests.h"

/* A monitor with these options; all others are defaults. */
static cohort_monitor *monitor_of(int64_t interval, const cohort_monitor_options *options) {
  cohort_monitor *monitor = NULL;

  ok(cohort_monitor_create(interval, options, &monitor));
  return monitor;
}

static size_t toc(cohort_monitor *monitor) {
  size_t num = 77;

  ok(cohort_monitor_toc(monitor, &num));
  return num;
}

/* Checks the entries of the latest toc, in order. */
static void names_are(const cohort_monitor *monitor, size_t num, const char *const *names, size_t num_names) {
  size_t i;

  assert_int_equal(num, num_names);
  for (i = 0; i < num; ++i) {
    const char *name = NULL;

    ok(cohort_monitor_entry(monitor, i, NULL, &name, NULL));
    assert_string_equal(name, names[i]);
  }
}
#define names(monitor, num, ...) \
  names_are((monitor), (num), (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

static void pass(cohort_group *group) {
  forward(group, floats(SHAPE(2, 2), FLOATS(3, 4, 1, 1)), floats(SHAPE(2, 1), FLOATS(0, 0)), 1);
}

/* MON-07: outputs in the order of execution, device after device; then each device's arguments. */
static void outputs_come_first_then_arguments_device_after_device(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_monitor *monitor = monitor_of(1, NULL);

  (void)state;
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  pass(group);
  names(monitor, toc(monitor), "fc_output", "lro_output", "fc_output", "lro_output", "data", "fc_weight", "label",
        "data", "fc_weight", "label");
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* MON-06: the statistic is norm / sqrt(size); MON-08: text of a single number has no brackets, and ends with a tab. */
static void the_default_statistic_is_the_norm_over_the_root_of_the_size(void **state) {
  cohort_group *group = bind_regression(1, 1, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor;
  cohort_arrays *values = NULL;
  cohort_ndarray *value = NULL;
  const char *text = NULL, *again = NULL;
  int64_t step = 0;

  (void)state;
  options.pattern = "data";
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  forward(group, floats(SHAPE(1, 2), FLOATS(3, 4)), floats(SHAPE(1, 1), FLOATS(0)), 0);
  assert_int_equal(toc(monitor), 1);
  ok(cohort_monitor_values(monitor, 0, &values));
  ok(cohort_arrays_get(values, 0, &value));
  has_shape(value, 1);
  holds_free(value, 3.5355339f);
  cohort_arrays_free(values);
  ok(cohort_monitor_entry(monitor, 0, &step, NULL, &text));
  assert_int_equal(step, 1);
  assert_true(strncmp(text, "3.5355", 6) == 0);
  assert_int_equal(text[strlen(text) - 1], '\t');
  ok(cohort_monitor_entry(monitor, 0, NULL, NULL, &again));
  assert_ptr_equal(text, again);
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* MON-06: a pattern matches from the start of a name, or anywhere in it; it need not select among toc's arrays. */
static void a_pattern_is_anchored_or_not(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  int32_t anywhere, all_in_toc;

  (void)state;
  options.pattern = "c_";
  for (anywhere = 0; anywhere < 2; ++anywhere) {
    for (all_in_toc = 0; all_in_toc < 2; ++all_in_toc) {
      cohort_monitor *monitor;

      options.pattern_mode = anywhere ? COHORT_PATTERN_ANYWHERE : COHORT_PATTERN_ANCHORED;
      options.all_in_toc = all_in_toc;
      monitor = monitor_of(1, &options);
      ok(cohort_monitor_install_on_group(monitor, group));
      ok(cohort_monitor_tic(monitor));
      pass(group);
      if (anywhere && all_in_toc) names(monitor, toc(monitor), "fc_output", "data", "fc_weight", "label");
      if (anywhere && !all_in_toc) names(monitor, toc(monitor), "fc_output", "fc_weight");
      if (!anywhere && all_in_toc) names(monitor, toc(monitor), "data", "fc_weight", "label");
      if (!anywhere && !all_in_toc) assert_int_equal(toc(monitor), 0);
      cohort_monitor_free(monitor);
    }
  }
  cohort_group_free(group);
}

/* MON-04, MON-07: with monitor_all the inputs of each operator too; sorted by name, equal names stay in order. */
static void inputs_are_reported_on_request_and_entries_sorted(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor;

  (void)state;
  options.monitor_all = 1;
  options.sort = 1;
  options.pattern = "fc";
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  pass(group);
  names(monitor, toc(monitor), "fc_data", "fc_output", "fc_weight", "fc_weight", "fc_weight");
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* MON-07: an interval of two reports batches 1 and 3; without a tic, and at a second toc, there is nothing. */
static void only_batches_on_the_interval_are_reported(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_monitor *monitor = monitor_of(2, NULL);
  int64_t batch, step = 0;

  (void)state;
  ok(cohort_monitor_install_on_group(monitor, group));
  assert_int_equal(toc(monitor), 0);
  for (batch = 1; batch <= 4; ++batch) {
    ok(cohort_monitor_tic(monitor));
    pass(group);
    assert_int_equal(toc(monitor), batch % 2 ? 5 : 0);
    if (batch % 2) {
      ok(cohort_monitor_entry(monitor, 4, &step, NULL, NULL));
      assert_int_equal(step, batch);
    }
    assert_int_equal(toc(monitor), 0);
  }
  ok(cohort_monitor_step(monitor, &step));
  assert_int_equal(step, 4);
  fails(cohort_monitor_entry(monitor, 0, NULL, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "index");
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* MON-03: backward reports the gradients it computes. */
static void backward_is_reported(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor;

  (void)state;
  options.pattern = "backward";
  options.pattern_mode = COHORT_PATTERN_ANYWHERE;
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  pass(group);
  backward(group, NULL);
  names(monitor, toc(monitor), "lro_backward_output0", "fc_backward_output1");
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* The behaviour of the test's statistic callback. */
typedef struct plan {
  int32_t status;
  size_t num_values;
  int null_value;
  int num_calls;
} plan;

static int32_t statistic(cohort_ndarray *array, cohort_arrays *values, void *user_data) {
  plan *how = user_data;
  size_t i;

  ++how->num_calls;
  for (i = 0; i < how->num_values; ++i) ok(cohort_arrays_add(values, NULL, how->null_value ? NULL : array));
  return how->status;
}

/* MON-06, MON-08, MON-12: a statistic may return several arrays; each is followed by a tab. */
static void a_statistic_may_give_several_values(void **state) {
  cohort_group *group = bind_regression(1, 1, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  plan how = {0, 2, 0, 0};
  cohort_monitor *monitor;
  cohort_arrays *values = NULL;
  const char *text = NULL;
  size_t num = 0;

  (void)state;
  options.pattern = "fc_weight";
  options.statistic = statistic;
  options.statistic_user_data = &how;
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  assert_int_equal(toc(monitor), 1);
  assert_int_equal(how.num_calls, 1);
  ok(cohort_monitor_values(monitor, 0, &values));
  ok(cohort_arrays_num(values, &num));
  assert_int_equal(num, 2);
  cohort_arrays_free(values);
  ok(cohort_monitor_entry(monitor, 0, NULL, NULL, &text));
  assert_string_equal(text, "[1 10]\t[1 10]\t");
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* MON-08: a statistic that fails or returns no array is an error of the call; a failed toc can be repeated. */
static void a_statistic_that_fails_is_an_error_of_the_call(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  plan how = {3, 1, 0, 0};
  cohort_monitor *monitor;
  size_t num = 77;

  (void)state;
  options.statistic = statistic;
  options.statistic_user_data = &how;
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  fails(cohort_group_run(group, 0), COHORT_ERROR_EXECUTION, "returned 3");
  assert_int_equal(how.num_calls, 1);
  fails(cohort_monitor_toc(monitor, &num), COHORT_ERROR_EXECUTION, "returned 3");
  how.status = 0;
  how.num_values = 0;
  fails(cohort_monitor_toc(monitor, &num), COHORT_ERROR_INVALID_ARGUMENT, "expected an array");
  how.num_values = 1;
  how.null_value = 1;
  fails(cohort_monitor_toc(monitor, &num), COHORT_ERROR_INVALID_ARGUMENT, "without an array");
  assert_int_equal(num, 77);
  how.null_value = 0;
  names(monitor, toc(monitor), "data", "fc_weight", "label");
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* MON-09: an executor has one callback. Of two monitors the later sees everything, the earlier only the arrays that toc
 * reads. */
static void a_later_monitor_replaces_the_callback_of_the_earlier(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_executor *executor = NULL;
  cohort_monitor *first = monitor_of(1, NULL), *second = monitor_of(1, NULL);

  (void)state;
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_monitor_install_on_executor(first, executor));
  ok(cohort_monitor_install_on_executor(second, executor));
  ok(cohort_monitor_tic(first));
  ok(cohort_monitor_tic(second));
  pass(group);
  names(first, toc(first), "data", "fc_weight", "label");
  names(second, toc(second), "fc_output", "lro_output", "data", "fc_weight", "label");
  cohort_executor_free(executor);
  cohort_monitor_free(first);
  cohort_monitor_free(second);
  cohort_group_free(group);
}

/* MON-10: the monitor follows a group to the executors that a reshape makes. */
static void a_reshaped_group_is_followed(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_descs *data = desc("data", SHAPE(3, 2), NULL), *label = desc("label", SHAPE(3, 1), NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  plan how = {0, 1, 0, 0};
  cohort_monitor *monitor;
  cohort_arrays *values = NULL;
  cohort_ndarray *value = NULL;

  (void)state;
  options.pattern = "data|fc_output";
  options.statistic = statistic;
  options.statistic_user_data = &how;
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_group_reshape(group, data, label));
  cohort_descs_free(data);
  cohort_descs_free(label);
  ok(cohort_monitor_tic(monitor));
  ok(cohort_group_run(group, 0));
  names(monitor, toc(monitor), "fc_output", "data");
  ok(cohort_monitor_values(monitor, 1, &values));
  ok(cohort_arrays_get(values, 0, &value));
  has_shape(value, 3, 2);
  cohort_ndarray_free(value);
  cohort_arrays_free(values);
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* MON-11: a pass under a monitor gives the same results. */
static void results_do_not_change(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_monitor *monitor = monitor_of(1, NULL);

  (void)state;
  pass(group);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 43, 11);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  pass(group);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 43, 11);
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

/* When a monitor is freed, what it watched goes on running and its statistic is no longer called; a monitor that is
 * kept keeps what it watches alive. */
static void monitor_and_group_are_freed_in_any_order(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  plan how = {0, 1, 0, 0};
  cohort_monitor *monitor;

  (void)state;
  options.statistic = statistic;
  options.statistic_user_data = &how;
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  cohort_monitor_free(monitor);
  pass(group);
  assert_int_equal(how.num_calls, 0);
  monitor = monitor_of(1, NULL);
  ok(cohort_monitor_install_on_group(monitor, group));
  cohort_group_free(group);
  ok(cohort_monitor_tic(monitor));
  names(monitor, toc(monitor), "data", "fc_weight", "label");
  cohort_monitor_free(monitor);
}

/* MON-06: the caller may choose names by a function; like a pattern it can be told to leave out arguments. */
static int32_t ends_as_told(const char *name, void *user_data) {
  const char *ending = user_data;
  const size_t length = strlen(name), wanted = strlen(ending);

  return length >= wanted && strcmp(name + length - wanted, ending) == 0;
}

static int32_t has_no_answer(const char *name, void *user_data) {
  (void)name;
  (void)user_data;
  return -1;
}

static void names_may_be_chosen_by_a_function(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor;

  (void)state;
  options.filter = ends_as_told;
  options.filter_user_data = "_output";
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  pass(group);
  names(monitor, toc(monitor), "fc_output", "lro_output");
  cohort_monitor_free(monitor);

  options.filter_user_data = "fc_output";
  options.all_in_toc = 1;
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  pass(group);
  names(monitor, toc(monitor), "fc_output", "data", "fc_weight", "label");
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

static void a_filter_that_fails_is_an_error_of_the_call(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor;
  size_t num = 0;

  (void)state;
  options.filter = has_no_answer;
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  fails(cohort_monitor_toc(monitor, &num), COHORT_ERROR_EXECUTION, "filter of the monitor: its callback returned -1");
  cohort_monitor_free(monitor);
  options.pattern = "fc";
  monitor = NULL;
  fails(cohort_monitor_create(1, &options, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "filter");
  assert_null(monitor);
  cohort_group_free(group);
}

/* MON-06: interval, pattern and constants are checked when a monitor is created. */
static void wrong_settings_are_refused(void **state) {
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT, made;
  cohort_monitor *monitor = NULL;
  size_t num = 0;

  (void)state;
  fails(cohort_monitor_create(0, NULL, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "at least 1, found 0");
  options.pattern = "(";
  fails(cohort_monitor_create(1, &options, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "pattern");
  options.pattern = NULL;
  options.pattern_mode = 2;
  fails(cohort_monitor_create(1, &options, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "pattern_mode");
  options.pattern_mode = 0;
  options.sort = 2;
  fails(cohort_monitor_create(1, &options, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "sort");
  options.sort = 0;
  options.all_in_toc = -1;
  fails(cohort_monitor_create(1, &options, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "all_in_toc");
  options.all_in_toc = 0;
  options.monitor_all = 2;
  fails(cohort_monitor_create(1, &options, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "monitor_all");
  assert_null(monitor);
  fails(cohort_monitor_toc(NULL, &num), COHORT_ERROR_INVALID_ARGUMENT, "monitor");
  fails(cohort_monitor_tic(NULL), COHORT_ERROR_INVALID_ARGUMENT, "monitor");
  fails(cohort_monitor_install_on_group(NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "monitor");
  cohort_monitor_options_init(&made, sizeof(made));
  options.monitor_all = 0;
  assert_memory_equal(&made, &options, sizeof(made));
  cohort_monitor_free(NULL);
}

/* A statistic that runs the executor it watches is refused before anything is touched, and the pass that it is in
 * fails. */
static int32_t runs_the_group(cohort_ndarray *array, cohort_arrays *values, void *user_data) {
  cohort_ndarray *data = floats(SHAPE(2, 2), FLOATS(9, 9, 9, 9));

  (void)array;
  (void)values;
  fails(cohort_group_forward(user_data, &data, 1, NULL, 0, 0), COHORT_ERROR_STATE,
        "a callback cannot use the group whose call it runs in");
  cohort_ndarray_free(data);
  return 1;
}

static void a_statistic_cannot_run_what_it_watches(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor;
  cohort_ndarray *data = floats(SHAPE(2, 2), FLOATS(3, 4, 1, 1));

  (void)state;
  options.statistic = runs_the_group;
  options.statistic_user_data = group;
  options.pattern = "fc_output";
  monitor = monitor_of(1, &options);
  ok(cohort_monitor_install_on_group(monitor, group));
  ok(cohort_monitor_tic(monitor));
  fails(cohort_group_forward(group, &data, 1, NULL, 0, 0), COHORT_ERROR_EXECUTION, "statistic");
  cohort_monitor_free(monitor);
  ok(cohort_group_forward(group, &data, 1, NULL, 0, 0)); /* it is over */
  cohort_ndarray_free(data);
  cohort_group_free(group);
}

/* A statistic may not change the executor, or its own monitor, either: all that is refused, and both go on. */
typedef struct meddler {
  cohort_group *group;
  cohort_executor *executor;
  cohort_monitor *monitor;
  int frees, num_calls;
} meddler;

static int32_t meddles(cohort_ndarray *array, cohort_arrays *values, void *user_data) {
  meddler *self = user_data;
  cohort_descs *data = desc("data", SHAPE(4, 2), NULL), *label = desc("label", SHAPE(4, 1), NULL);
  size_t num = 0;

  ++self->num_calls;
  if (self->group) {
    fails(cohort_group_set_monitor(self->group, NULL, NULL, 0), COHORT_ERROR_STATE, "a callback cannot use the group");
    if (self->num_calls == 1) /* the first device is in its pass */
      fails(cohort_executor_set_monitor(self->executor, NULL, NULL, 0), COHORT_ERROR_STATE, "in a pass already");
    fails(cohort_group_reshape(self->group, data, label), COHORT_ERROR_STATE, "a callback cannot use the group");
    fails(cohort_group_bind(self->group, data, label, NULL, 1), COHORT_ERROR_STATE, "a callback cannot use the group");
  }
  if (self->frees) {
    cohort_monitor_free(self->monitor); /* a second call does nothing */
  } else {
    fails(cohort_monitor_tic(self->monitor), COHORT_ERROR_STATE, "its own callback");
    fails(cohort_monitor_toc(self->monitor, &num), COHORT_ERROR_STATE, "its own callback");
    fails(cohort_monitor_install_on_executor(self->monitor, self->executor), COHORT_ERROR_STATE, "its own callback");
  }
  ok(cohort_arrays_add(values, NULL, array));
  cohort_descs_free(data);
  cohort_descs_free(label);
  return 0;
}

static void a_statistic_cannot_change_what_it_watches(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  meddler self = {NULL, NULL, NULL, 0, 0};
  size_t num = 77;

  (void)state;
  options.statistic = meddles;
  options.statistic_user_data = &self;
  self.monitor = monitor_of(1, &options);
  self.group = group;
  ok(cohort_group_executor(group, 0, &self.executor));
  ok(cohort_monitor_install_on_group(self.monitor, group));
  ok(cohort_monitor_tic(self.monitor));
  pass(group);
  assert_int_equal(self.num_calls, 4);
  self.group = NULL; /* toc is not a pass */
  names(self.monitor, toc(self.monitor), "fc_output", "lro_output", "fc_output", "lro_output", "data", "fc_weight",
        "label", "data", "fc_weight", "label");
  ok(cohort_monitor_tic(self.monitor));
  self.frees = 1;
  fails(cohort_monitor_toc(self.monitor, &num), COHORT_ERROR_INVALID_ARGUMENT, "freed handle");
  assert_int_equal(num, 77);
  cohort_executor_free(self.executor);
  cohort_group_free(group);
}

/* The callback of a group on two devices, which tries to use the group through another handle. */
static void uses_the_group(const char *name, cohort_ndarray *array, void *user_data) {
  cohort_group *const group = user_data;
  cohort_ndarray *merged_array = NULL;
  cohort_arrays *args = NULL, *aux = NULL;
  size_t num = 0;

  (void)name;
  (void)array;
  fails(cohort_group_num_contexts(group, &num), COHORT_ERROR_STATE, "a callback cannot use the group");
  fails(cohort_group_copy_params(group, &args, &aux), COHORT_ERROR_STATE, "a callback cannot use the group");
  fails(cohort_group_merged(group, COHORT_GROUP_OUTPUTS, 0, &merged_array), COHORT_ERROR_STATE, "a callback cannot");
  fails(cohort_group_wait(group), COHORT_ERROR_STATE, "a callback cannot use the group");
}

/* A group is refused to the callbacks of its own calls, by whatever handle, and free for others. */
static void a_callback_cannot_use_its_group(void **state) {
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 1}};
  cohort_symbol *symbol = regression("1");
  cohort_descs *data = desc("data", SHAPE(2, 2), NULL), *label = desc("label", SHAPE(2, 1), NULL);
  cohort_manager *manager = NULL;
  cohort_group *group = NULL, *again = NULL;

  (void)state;
  ok(cohort_manager_create(symbol, contexts, 2, 2, data, label, NULL, 0, NULL, &manager));
  ok(cohort_manager_main_group(manager, &group));
  ok(cohort_manager_main_group(manager, &again));
  assert_ptr_not_equal(group, again);
  ok(cohort_group_set_monitor(group, uses_the_group, again, 0));
  pass(group);
  ok(cohort_group_set_monitor(group, NULL, NULL, 0));
  ok(cohort_group_wait(again));
  cohort_group_free(group);
  cohort_group_free(again);
  cohort_manager_free(manager);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_statistic_cannot_change_what_it_watches),
      TEST(a_statistic_cannot_run_what_it_watches),
      TEST(a_callback_cannot_use_its_group),
      TEST(outputs_come_first_then_arguments_device_after_device),
      TEST(the_default_statistic_is_the_norm_over_the_root_of_the_size),
      TEST(a_pattern_is_anchored_or_not),
      TEST(inputs_are_reported_on_request_and_entries_sorted),
      TEST(only_batches_on_the_interval_are_reported),
      TEST(backward_is_reported),
      TEST(a_statistic_may_give_several_values),
      TEST(a_statistic_that_fails_is_an_error_of_the_call),
      TEST(a_later_monitor_replaces_the_callback_of_the_earlier),
      TEST(a_reshaped_group_is_followed),
      TEST(results_do_not_change),
      TEST(monitor_and_group_are_freed_in_any_order),
      TEST(names_may_be_chosen_by_a_function),
      TEST(a_filter_that_fails_is_an_error_of_the_call),
      TEST(wrong_settings_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
