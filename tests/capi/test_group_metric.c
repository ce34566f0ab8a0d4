/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a group's outputs: MET-01 to MET-06. */
#include <math.h>
#include <stdio.h>

#include "support/group_tests.h"

/* The calls that a custom metric has received. */
typedef struct Seen {
  size_t num_calls;
  char lines[8][160]; /* one per call: labels, then "|", then predictions, each "shape=values@cpu id" */
} Seen;

static void describe(char *line, size_t capacity, const cohort_ndarray *array) {
  int64_t shape[COHORT_MAX_AXES], size = 0;
  cohort_context context;
  float values[16];
  int32_t num_axes = 0, i;

  ok(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &num_axes));
  ok(cohort_ndarray_size(array, &size));
  ok(cohort_ndarray_context(array, &context));
  assert_true((size_t)size <= COUNT(values));
  ok(cohort_ndarray_read(array, values, (size_t)size * sizeof(float)));
  for (i = 0; i < num_axes; ++i)
    snprintf(line + strlen(line), capacity - strlen(line), i ? "x%d" : "%d", (int)shape[i]);
  for (i = 0; i < size; ++i)
    snprintf(line + strlen(line), capacity - strlen(line), i ? ",%g" : "=%g", (double)values[i]);
  snprintf(line + strlen(line), capacity - strlen(line), "@%d ", (int)context.device_id);
}

static int32_t note_call(cohort_ndarray *const *labels, size_t num_labels, cohort_ndarray *const *preds,
                         size_t num_preds, double *out_sum, double *out_num, void *user_data) {
  Seen *seen = user_data;
  char *line = seen->lines[seen->num_calls % COUNT(seen->lines)];
  size_t i;

  line[0] = 0;
  for (i = 0; i < num_labels; ++i) describe(line, sizeof(seen->lines[0]), labels[i]);
  snprintf(line + strlen(line), sizeof(seen->lines[0]) - strlen(line), "| ");
  for (i = 0; i < num_preds; ++i) describe(line, sizeof(seen->lines[0]), preds[i]);
  ++seen->num_calls;
  *out_sum = 1;
  *out_num = 1;
  return 0;
}

static cohort_metric *seeing_metric(Seen *seen, int32_t allow_extra_outputs) {
  cohort_metric *metric = NULL;

  memset(seen, 0, sizeof(*seen));
  ok(cohort_metric_create_custom("seen", note_call, seen, allow_extra_outputs, &metric));
  return metric;
}

static cohort_metric *metric_named(const char *kind) {
  cohort_metric *metric = NULL;

  ok(cohort_metric_create(kind, NULL, NULL, 0, &metric));
  return metric;
}

static void counts_are(const cohort_metric *metric, double expected_sum, double expected_num) {
  double sum = -1, num = -1;

  ok(cohort_metric_counters(metric, 0, 0, &sum, &num));
  if (!(fabs(sum - expected_sum) <= 1e-6 * fabs(expected_sum)) || num != expected_num)
    fail_msg("expected %g of %g, found %g of %g", expected_sum, expected_num, sum, num);
}

/* Checks that the array holds these values and lies on the second context. */
static void is_of_second(const char *found, const char *expected) {
  char line[160];

  snprintf(line, sizeof(line), "%s@%d ", expected, (int)test_contexts()[1].device_id);
  assert_string_equal(found, line);
}

static cohort_error *try_update(cohort_group *group, cohort_metric *metric, cohort_ndarray *label) {
  cohort_error *error = cohort_group_update_metric(group, metric, &label, 1);

  cohort_ndarray_free(label);
  return error;
}

/* MET-01: one update per device, in order, with the device's labels and outputs. Outputs are 10, 32, 54, 76, 98. */
static void each_device_is_one_update_in_order(void **state) {
  cohort_group *group = bind_regression(2, 5, NULL);
  cohort_metric *mae = metric_named("mae"), *metric;
  Seen seen;

  (void)state;
  metric = seeing_metric(&seen, 0);
  forward(group, counted(SHAPE(5, 2), 1), NULL, 0);
  ok(try_update(group, metric, counted(SHAPE(5, 1), 1)));
  assert_int_equal(seen.num_calls, 2);
  assert_string_equal(seen.lines[0], "3x1=0,1,2@0 | 3x1=10,32,54@0 ");
  is_of_second(seen.lines[1], "2x1=3,4@0 | 2x1=76,98");
  counts_are(metric, 2, 2);
  /* A metric that counts updates averages over devices, not samples: the means 32 and 87, not 54. */
  ok(try_update(group, mae, floats(SHAPE(5, 1), FLOATS(0, 0, 0, 0, 0))));
  counts_are(mae, 32 + 87, 2);
  ok(try_update(group, mae, floats(SHAPE(5, 1), FLOATS(0, 0, 0, 0, 0))));
  counts_are(mae, 2 * (32 + 87), 4);
  cohort_metric_free(mae);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* MET-02: labels are sliced along the axes of their descriptors, or passed whole to each device, and stay on their
 * context. */
static void labels_are_sliced_along_their_own_axes(void **state) {
  const cohort_context far = {COHORT_DEVICE_CPU, 5};
  cohort_symbol *heads[3], *both = NULL;
  cohort_descs *label = desc("label", SHAPE(3, 1), "NC");
  cohort_ndarray *labels[3];
  cohort_metric *metric;
  cohort_group *group;
  Seen seen;
  size_t i;

  (void)state;
  heads[0] = regression("1");
  heads[1] = node("relu", "b", NO_ATTRS, INPUTS(variable("across")));
  heads[2] = node("relu", "c", NO_ATTRS, INPUTS(variable("whole")));
  ok(cohort_symbol_group(heads, 3, &both));
  for (i = 0; i < 3; ++i) cohort_symbol_free(heads[i]);
  add_desc(label, "across", SHAPE(2, 3), "CN");
  add_desc(label, "whole", SHAPE(2), "C");
  group = bind_for_training(both, 2, desc("data", SHAPE(3, 2), NULL), label, NAMES("fc_weight"), NULL);
  metric = seeing_metric(&seen, 0);
  labels[0] = counted(SHAPE(3, 1), 1);
  labels[1] = counted(SHAPE(2, 3), 1);
  labels[2] = floats(SHAPE(2), FLOATS(7, 8));
  for (i = 0; i < 3; ++i) {
    cohort_ndarray *moved = NULL;
    ok(cohort_ndarray_copy(labels[i], &far, &moved));
    cohort_ndarray_free(labels[i]);
    labels[i] = moved;
  }
  ok(cohort_group_update_metric(group, metric, labels, 3));
  *strchr(seen.lines[0], '|') = *strchr(seen.lines[1], '|') = 0;
  assert_string_equal(seen.lines[0], "2x1=0,1@5 2x2=0,1,3,4@5 2=7,8@5 ");
  assert_string_equal(seen.lines[1], "1x1=2@5 2x1=2,5@5 2=7,8@5 ");
  for (i = 0; i < 3; ++i) cohort_ndarray_free(labels[i]);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* MET-03, MET-04: sliced labels are one list per device of the device's length; anything else counts nothing. */
static void labels_may_be_split_already(void **state) {
  cohort_group *group = bind_regression(2, 3, NULL);
  cohort_ndarray *labels[3];
  cohort_metric *metric;
  Seen seen;
  size_t i;

  (void)state;
  metric = seeing_metric(&seen, 0);
  forward(group, counted(SHAPE(3, 2), 1), NULL, 0);
  labels[0] = counted(SHAPE(2, 1), 1);
  labels[1] = floats(SHAPE(1, 1), FLOATS(9));
  labels[2] = counted(SHAPE(1, 1), 1);
  ok(cohort_group_update_metric_presliced(group, metric, 2, labels, 1));
  assert_string_equal(seen.lines[0], "2x1=0,1@0 | 2x1=10,32@0 ");
  is_of_second(seen.lines[1], "1x1=9@0 | 1x1=54");
  fails(cohort_group_update_metric_presliced(group, metric, 1, labels, 1), COHORT_ERROR_INVALID_ARGUMENT, "found 1");
  fails(cohort_group_update_metric_presliced(group, metric, 3, labels, 1), COHORT_ERROR_INVALID_ARGUMENT, "found 3");
  fails(cohort_group_update_metric_presliced(group, metric, 2, labels, 0), COHORT_ERROR_INVALID_ARGUMENT, "found 0");
  fails(cohort_group_update_metric_presliced(group, metric, 2, labels + 1, 1), COHORT_ERROR_SHAPE, "label");
  assert_int_equal(seen.num_calls, 2);
  counts_are(metric, 2, 2);
  for (i = 0; i < 3; ++i) cohort_ndarray_free(labels[i]);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* MET-04: there must be as many labels as descriptors, as long as the batch; otherwise no device is counted. */
static void labels_of_another_number_or_length_are_refused(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *two[2];
  cohort_metric *metric;
  Seen seen;

  (void)state;
  metric = seeing_metric(&seen, 1);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  two[0] = two[1] = counted(SHAPE(4, 1), 1);
  fails(cohort_group_update_metric(group, metric, two, 2), COHORT_ERROR_INVALID_ARGUMENT, "found 2");
  fails(cohort_group_update_metric(group, metric, NULL, 0), COHORT_ERROR_INVALID_ARGUMENT, "found 0");
  fails(try_update(group, metric, counted(SHAPE(3, 1), 1)), COHORT_ERROR_SHAPE, "'label': expected 4 samples");
  fails(try_update(group, metric, counted(SHAPE(5, 1), 1)), COHORT_ERROR_SHAPE, "'label': expected 4 samples");
  assert_int_equal(seen.num_calls, 0);
  counts_are(metric, 0, 0);
  ok(cohort_group_update_metric(group, metric, two, 1));
  counts_are(metric, 2, 2);
  cohort_ndarray_free(two[0]);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* An update that fails on the last device counts nothing on the first either: here three classes where f1 allows
 * two. */
static void devices_are_counted_all_or_none(void **state) {
  cohort_group *group = bind_regression(2, 7, NULL);
  cohort_metric *metric = metric_named("f1");

  (void)state;
  forward(group, counted(SHAPE(7, 2), 1), NULL, 0);
  ok(try_update(group, metric, floats(SHAPE(7), FLOATS(0, 1, 0, 1, 0, 1, 1))));
  counts_are(metric, 0, 2);
  fails(try_update(group, metric, floats(SHAPE(7), FLOATS(0, 1, 0, 1, 0, 1, 2))), COHORT_ERROR_INVALID_ARGUMENT,
        "two classes");
  counts_are(metric, 0, 2);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* MET-05: a group bound without labels has none to compare. */
static void a_group_without_labels_updates_no_metric(void **state) {
  cohort_group *group =
      bind_for_training(linear("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), NULL);
  cohort_metric *metric = metric_named("mse");
  cohort_ndarray *label = counted(SHAPE(4, 1), 1), *both[2];

  (void)state;
  both[0] = both[1] = label;
  fails(cohort_group_update_metric(group, metric, &label, 1), COHORT_ERROR_STATE, "without labels");
  fails(cohort_group_update_metric(group, metric, NULL, 0), COHORT_ERROR_STATE, "without labels");
  fails(cohort_group_update_metric_presliced(group, metric, 2, both, 1), COHORT_ERROR_STATE, "without labels");
  cohort_ndarray_free(label);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* Two regressions, "a" and "b" with labels "a_label" and "b_label", of data and of its negative; one device. */
static cohort_group *bind_two_heads(void) {
  cohort_symbol *heads[2], *both = NULL, *data = variable("data"), *same = NULL;
  cohort_descs *label = desc("b_label", SHAPE(2, 1), NULL);
  cohort_group *group;

  ok(cohort_symbol_output(data, 0, &same));
  heads[0] = node("LinearRegressionOutput", "a", NO_ATTRS, INPUTS(data, variable("a_label")));
  heads[1] = node("LinearRegressionOutput", "b", NO_ATTRS,
                  INPUTS(node("negative", "n", NO_ATTRS, INPUTS(same)), variable("b_label")));
  ok(cohort_symbol_group(heads, 2, &both));
  cohort_symbol_free(heads[0]);
  cohort_symbol_free(heads[1]);
  add_desc(label, "a_label", SHAPE(2, 1), NULL);
  group = bind_for_training(both, 1, desc("data", SHAPE(2, 1), NULL), label, NO_NAMES, NULL);
  forward(group, floats(SHAPE(2, 1), FLOATS(1, 2)), NULL, 0);
  return group;
}

/* MET-06: all labels in the descriptors' order and all outputs in the heads' order, or those that a metric names, in
 * its order. */
static void a_metric_may_name_its_labels_and_outputs(void **state) {
  const char *const outputs[] = {"b_output", "a_output"}, *const labels_in_turn[] = {"a_label", "b_label"};
  const char *const unknown[] = {"c_output"};
  cohort_group *group = bind_two_heads();
  cohort_ndarray *labels[2];
  cohort_metric *metric;
  Seen seen;

  (void)state;
  metric = seeing_metric(&seen, 1);
  labels[0] = floats(SHAPE(2, 1), FLOATS(5, 6)); /* b_label */
  labels[1] = floats(SHAPE(2, 1), FLOATS(7, 8));
  ok(cohort_group_update_metric(group, metric, labels, 2));
  assert_string_equal(seen.lines[0], "2x1=5,6@0 2x1=7,8@0 | 2x1=1,2@0 2x1=-1,-2@0 ");
  ok(cohort_metric_set_names(metric, labels_in_turn, 2, outputs, 2));
  ok(cohort_group_update_metric(group, metric, labels, 2));
  assert_string_equal(seen.lines[1], "2x1=7,8@0 2x1=5,6@0 | 2x1=-1,-2@0 2x1=1,2@0 ");
  ok(cohort_metric_set_names(metric, labels_in_turn, 1, NULL, 0));
  ok(cohort_group_update_metric(group, metric, labels, 2));
  assert_string_equal(seen.lines[2], "2x1=7,8@0 | 2x1=1,2@0 2x1=-1,-2@0 ");
  ok(cohort_metric_set_names(metric, NULL, 0, unknown, 1));
  fails(cohort_group_update_metric(group, metric, labels, 2), COHORT_ERROR_NAME, "c_output");
  ok(cohort_metric_set_names(metric, unknown, 1, NULL, 0));
  fails(cohort_group_update_metric(group, metric, labels, 2), COHORT_ERROR_NAME, "c_output");
  assert_int_equal(seen.num_calls, 3);
  cohort_ndarray_free(labels[0]);
  cohort_ndarray_free(labels[1]);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* MET-06: the same without a group: labels and predictions are found by name, and a composite's names override its
 * own. */
static void named_arrays_update_a_metric(void **state) {
  const char *const pick[] = {"y"}, *const child_pick[] = {"z"};
  cohort_arrays *labels = named("x", floats(SHAPE(1), FLOATS(1))), *preds = named("x", floats(SHAPE(1), FLOATS(2)));
  cohort_metric *metric, *composite = metric_named("composite");
  Seen seen;

  (void)state;
  add_named(labels, "y", floats(SHAPE(1), FLOATS(3)));
  add_named(preds, "y", floats(SHAPE(1), FLOATS(4)));
  metric = seeing_metric(&seen, 0);
  ok(cohort_metric_update_named(metric, labels, preds));
  assert_string_equal(seen.lines[0], "1=1@0 1=3@0 | 1=2@0 1=4@0 ");
  ok(cohort_metric_set_names(composite, pick, 1, pick, 1));
  ok(cohort_metric_add(composite, metric));
  ok(cohort_metric_update_named(composite, labels, preds));
  assert_string_equal(seen.lines[1], "1=3@0 | 1=4@0 ");
  ok(cohort_metric_set_names(metric, NULL, 0, child_pick, 1));
  fails(cohort_metric_update_named(composite, labels, preds), COHORT_ERROR_NAME, "'z'");
  assert_int_equal(seen.num_calls, 2);
  cohort_arrays_free(labels);
  cohort_arrays_free(preds);
  cohort_metric_free(metric);
  cohort_metric_free(composite);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_device_is_one_update_in_order),
      TEST(labels_are_sliced_along_their_own_axes),
      TEST(labels_may_be_split_already),
      TEST(labels_of_another_number_or_length_are_refused),
      TEST(devices_are_counted_all_or_none),
      TEST(a_group_without_labels_updates_no_metric),
      TEST(a_metric_may_name_its_labels_and_outputs),
      TEST(named_arrays_update_a_metric),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
