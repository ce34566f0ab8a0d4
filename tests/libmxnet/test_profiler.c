/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler: a file in Chrome's format, totals that can be reset, and the host's own tasks, counters and marks. */
#include "mxnet_test.h"

static void configure(const char *filename, const char *aggregate_stats) {
  const char *const keys[] = {"filename", "aggregate_stats", "profile_all"}, *const values[] = {
                                                                                 filename, aggregate_stats, "True"};

  ok(MXSetProcessProfilerConfig(3, keys, values, NULL));
}

/* Applies an operator to new zeros, `times` times. */
static void apply(const char *op, int times) {
  cohort_ndarray *in = NULL;
  cohort_arrays *outs = NULL;
  const int64_t length = 2;

  assert_null(cohort_ndarray_zeros(&length, 1, COHORT_DTYPE_FLOAT32, NULL, &in));
  for (; times > 0; --times) {
    assert_null(cohort_operator_invoke(op, NULL, NULL, 0, &in, 1, NULL, 0, NULL, &outs));
    cohort_arrays_free(outs);
  }
  cohort_ndarray_free(in);
}

/* The text after `name` in the report, as JSON. */
static const char *report_of(const char *name, int reset, int sort_by, int ascending) {
  const char *text = NULL, *found;

  ok(MXAggregateProfileStatsPrintEx(&text, reset, 1, sort_by, ascending));
  assert_int_equal(text[0], '{');
  found = strstr(text, name);
  if (!found) fail_msg("there is no %s in %s", name, text);
  return found;
}

static void assert_in_file(const char *path, const char *text, int is_there) {
  size_t num_bytes = 0;
  char *bytes = read_file(path, &num_bytes);

  bytes[num_bytes] = 0;
  if ((strstr(bytes, text) != NULL) != is_there) fail_msg("%s is %s the file", text, is_there ? "not in" : "in");
  free(bytes);
}

static void a_profile_has_operators_and_what_the_host_adds(void **state) {
  const char *const path = path_of("profile.json");
  ProfileHandle domain = NULL, task = NULL, frame = NULL, event = NULL, counter = NULL;
  const char *text = NULL;

  (void)state;
  configure(path, "True");
  ok(MXProfileCreateDomain("training", &domain));
  ok(MXProfileCreateTask(domain, "epoch \"1\"", &task));
  ok(MXProfileCreateFrame(domain, "frame", &frame));
  ok(MXProfileCreateEvent("event", &event));
  ok(MXProfileCreateCounter(domain, "loss", &counter));
  ok(MXSetProcessProfilerState(1, 0, NULL));
  ok(MXProfileDurationStart(task));
  ok(MXProfileDurationStart(event));
  apply("sqrt", 3);
  ok(MXProfileDurationStop(task)); /* it began first and ends first */
  ok(MXProfileDurationStop(event));
  ok(MXProfileDurationStart(frame));
  ok(MXProfileDurationStop(frame));
  ok(MXProfileSetCounter(counter, 5));
  ok(MXProfileAdjustCounter(counter, -7));
  ok(MXProfileSetMarker(domain, "half", "process"));
  assert_non_null(strstr(report_of("\"sqrt\": {", 0, 0, 0), "\"Count\": 3, \"Total\": "));
  assert_true(strncmp(report_of("\"loss\": {", 0, 0, 0),
                      "\"loss\": {\"Count\": 2, \"Total\": 3, \"Min\": -2, \"Max\": 5", 50) == 0);
  report_of("\"training,frame\": {", 0, 4, 1);
  report_of("\"event\": {", 0, 3, 1);
  report_of("\"epoch \\\"1\\\"\": {\"Count\": 1", 0, 2, 1);
  report_of("\"Unit\": {\"Time\": \"ms\", \"Memory\": \"kB\"}", 0, 1, 0);
  ok(MXAggregateProfileStatsPrint(&text, 0));
  assert_non_null(strstr(text, "sqrt"));
  assert_non_null(strstr(text, "Total Count"));
  ok(MXDumpProcessProfile(0, 0, NULL));
  assert_in_file(path, "\"traceEvents\"", 1);
  assert_in_file(path, "\"sqrt\"", 1);
  assert_in_file(path, "training: loss", 1);
  assert_in_file(path, "\"half\"", 1);
  /* The report is reset, the file is not. */
  ok(MXAggregateProfileStatsPrint(&text, 1));
  ok(MXAggregateProfileStatsPrintEx(&text, 0, 1, 0, 0));
  assert_null(strstr(text, "sqrt"));
  apply("exp", 1);
  report_of("\"exp\": {\"Count\": 1", 0, 0, 0);
  ok(MXDumpProcessProfile(1, 0, NULL)); /* the last file with these */
  assert_in_file(path, "\"sqrt\"", 1);
  apply("exp", 1);
  ok(MXDumpProcessProfile(0, 0, NULL));
  assert_in_file(path, "\"sqrt\"", 0);
  ok(MXSetProcessProfilerState(0, 0, NULL));
  ok(MXProfileDestroyHandle(domain));
  ok(MXProfileDestroyHandle(task));
  ok(MXProfileDestroyHandle(frame));
  ok(MXProfileDestroyHandle(event));
  ok(MXProfileDestroyHandle(counter));
}

static void nothing_is_recorded_in_a_pause_or_after_the_end(void **state) {
  const char *text = NULL;

  (void)state;
  configure(path_of("profile.json"), "1");
  ok(MXAggregateProfileStatsPrint(&text, 1));
  apply("sqrt", 1);
  ok(MXSetProfilerState(1));
  ok(MXSetProfilerState(1));
  ok(MXProcessProfilePause(1, 0, NULL));
  apply("exp", 1);
  ok(MXProcessProfilePause(0, 0, NULL));
  apply("abs", 2);
  ok(MXProcessProfilePause(1, 0, NULL));
  ok(MXSetProfilerState(0));
  apply("square", 1);
  ok(MXSetProfilerState(1)); /* a start ends the pause */
  apply("sin", 1);
  ok(MXSetProfilerState(0));
  report_of("\"abs\": {\"Count\": 2", 0, 0, 0);
  report_of("\"sin\": {\"Count\": 1", 0, 0, 0);
  ok(MXAggregateProfileStatsPrint(&text, 0));
  assert_null(strstr(text, "sqrt"));
  assert_null(strstr(text, "exp"));
  assert_null(strstr(text, "square"));
}

static void rows_are_sorted_as_asked(void **state) {
  const char *text = NULL;

  (void)state;
  configure(path_of("profile.json"), "1");
  ok(MXSetProfilerState(1));
  ok(MXAggregateProfileStatsPrint(&text, 1));
  apply("exp", 1);
  apply("abs", 3);
  apply("square", 2);
  ok(MXAggregateProfileStatsPrintEx(&text, 0, 1, 4, 0));
  assert_true(strstr(text, "\"abs\"") < strstr(text, "\"square\"") &&
              strstr(text, "\"square\"") < strstr(text, "\"exp\""));
  ok(MXAggregateProfileStatsPrintEx(&text, 0, 1, 4, 1));
  assert_true(strstr(text, "\"exp\"") < strstr(text, "\"square\"") &&
              strstr(text, "\"square\"") < strstr(text, "\"abs\""));
  ok(MXSetProfilerState(0));
}

static void wrong_calls_are_errors(void **state) {
  const char *const key = "profile_everything", *const yes = "True", *const name = "filename", *const empty = "",
                    *const flag = "aggregate_stats", *const maybe = "maybe";
  const char *text = NULL;
  ProfileHandle domain = NULL, task = NULL, none = NULL;

  (void)state;
  fails(MXSetProcessProfilerConfig(1, &key, &yes, NULL), "no setting 'profile_everything'");
  fails(MXSetProcessProfilerConfig(1, &name, &empty, NULL), "filename is empty");
  fails(MXSetProcessProfilerConfig(1, &flag, &maybe, NULL), "found 'maybe'");
  fails(MXSetProcessProfilerConfig(1, NULL, NULL, NULL), "keys");
  fails(MXSetProcessProfilerState(2, 0, NULL), "state");
  fails(MXSetProcessProfilerState(1, 1, NULL), "no servers");
  fails(MXAggregateProfileStatsPrintEx(&text, 0, 2, 0, 0), "format");
  fails(MXAggregateProfileStatsPrintEx(&text, 0, 0, 5, 0), "sort_by");
  fails(MXAggregateProfileStatsPrintEx(NULL, 0, 0, 0, 0), "out_str");
  ok(MXProfileCreateDomain("d", &domain));
  ok(MXProfileCreateTask(domain, "t", &task));
  fails(MXProfileCreateTask(task, "t", &none), "expected a domain");
  fails(MXProfileCreateTask(domain, NULL, &none), "name is NULL");
  fails(MXProfileDurationStop(task), "'t' has not been started");
  fails(MXProfileDurationStart(domain), "expected a task, frame or event");
  fails(MXProfileSetCounter(task, 1), "expected a counter");
  fails(MXProfileSetMarker(task, "m", "process"), "expected a domain");
  assert_null(none);
  ok(MXProfileDestroyHandle(domain)); /* the task stays usable, and ends when it is destroyed */
  ok(MXProfileDurationStart(task));
  ok(MXProfileDestroyHandle(task));
  fails(MXProfileDurationStart(task), "freed");
  configure(path_of("no/folder.json"), "0");
  ok(MXSetProfilerState(1));
  fails(MXDumpProfile(0), "folder.json");
  ok(MXSetProfilerState(0));
}

static void the_library_says_what_it_is(void **state) {
  const struct LibFeature *features = NULL;
  size_t num = 0, i, num_found = 0;
  int version = 0;

  (void)state;
  ok(MXGetVersion(&version));
  assert_int_equal(version, 10901);
  ok(MXLibInfoFeatures(&features, &num));
  for (i = 0; i < num; ++i) {
    if (strcmp(features[i].name, "TVM_OP") == 0 || strcmp(features[i].name, "INT64_TENSOR_SIZE") == 0) {
      assert_false(features[i].enabled);
      ++num_found;
    }
    if (strcmp(features[i].name, "MKLDNN") == 0) num_found += features[i].enabled;
  }
  assert_int_equal(num_found, 3);
}

/* The profiler of a process keeps its records from the first start on. */
static int start_for_the_first_time(void **state) {
  (void)state;
  if (MXDumpProcessProfile(0, 0, NULL) == 0 || !strstr(MXGetLastError(), "the profiler has not run")) return -1;
  configure("unused.json", "True");
  ok(MXSetProfilerState(1));
  ok(MXSetProfilerState(0));
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_profile_has_operators_and_what_the_host_adds),
      TEST(nothing_is_recorded_in_a_pause_or_after_the_end),
      TEST(rows_are_sorted_as_asked),
      TEST(wrong_calls_are_errors),
      TEST(the_library_says_what_it_is),
  };

  return cmocka_run_group_tests(tests, start_for_the_first_time, NULL);
}
