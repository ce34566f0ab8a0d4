/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a batch, running it forward, and reading outputs: FWD-01 to FWD-10, OUT-01 to OUT-08, GRP-13, GRP-20. How
 * outputs are merged is in test_group_outputs.c. */
#include "support/group_tests.h"

/* A group whose weight is an input without a batch axis: fc = data . fc_weight^T. */
static cohort_group *bind_two_inputs(size_t num_contexts, int64_t batch, const cohort_group_options *options) {
  cohort_descs *data = desc("data", SHAPE(batch, 2), "NC");

  add_desc(data, "fc_weight", SHAPE(1, 2), "CD");
  return bind_for_training(linear("1"), num_contexts, data, NULL, NO_NAMES, options);
}

/* FWD-10: each row keeps its place in the output, whatever device computes it. Row i of the data is (2i, 2i + 1). */
static void the_result_is_that_of_one_device(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  const double workload[] = {1, 2};
  cohort_group *group;

  (void)state;
  options.workload = workload;
  options.num_workloads = COUNT(workload);
  group = bind_regression(2, 7, &options);
  forward(group, counted(SHAPE(7, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76, 98, 120, 142);
  cohort_group_free(group);
}

/* FWD-01: device i gets slice i along the batch axis. */
static void each_device_gets_its_slice(void **state) {
  cohort_group *group = bind_regression(2, 5, NULL);

  (void)state;
  forward(group, counted(SHAPE(5, 2), 1), counted(SHAPE(5, 1), 100), 1);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 1, 2, 3, 4, 5);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 1), 6, 7, 8, 9);
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 0), 0, 100, 200);
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 1), 300, 400);
  cohort_group_free(group);
}

/* FWD-01, OUT-02: a batch axis that is not the first, of an input and, by its node's __layout__, of an output. */
static void the_batch_axis_need_not_be_the_first(void **state) {
  cohort_symbol *symbol = node("relu", "r", ATTRS("__layout__", "CN"), INPUTS(variable("data")));
  cohort_group *group = bind_for_training(symbol, 2, desc("data", SHAPE(2, 3), "CN"), NULL, NO_NAMES, NULL);
  cohort_ndarray *output;
  int32_t axis = -7;

  (void)state;
  forward(group, counted(SHAPE(2, 3), 1), NULL, 0);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 1, 3, 4);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 1), 2, 5);
  ok(cohort_group_axis(group, COHORT_GROUP_OUTPUTS, 0, &axis));
  assert_int_equal(axis, 1);
  output = merged(group, COHORT_GROUP_OUTPUTS, 0);
  has_shape(output, 2, 3);
  holds_free(output, 0, 1, 2, 3, 4, 5);
  cohort_group_free(group);
}

/* FWD-01: an array without batch axis is copied whole to each device. */
static void an_input_without_batch_axis_goes_whole_to_each_device(void **state) {
  cohort_group *group = bind_two_inputs(2, 4, NULL);
  cohort_ndarray *batch[2];

  (void)state;
  batch[0] = counted(SHAPE(4, 2), 1);
  batch[1] = floats(SHAPE(1, 2), FLOATS(1, 100));
  ok(cohort_group_forward(group, batch, 2, NULL, 0, 0));
  holds_free(device_array(group, COHORT_GROUP_DATA, 1, 0), 1, 100);
  holds_free(device_array(group, COHORT_GROUP_DATA, 1, 1), 1, 100);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 100, 302, 504, 706);
  cohort_ndarray_free(batch[0]);
  cohort_ndarray_free(batch[1]);
  cohort_group_free(group);
}

/* FWD-02: a batch is converted to the bound dtype, along any axis. */
static void a_batch_of_another_dtype_is_converted(void **state) {
  const int32_t numbers[] = {-1, 2, 3, 4, 5, 6};
  cohort_symbol *symbol = node("relu", "r", ATTRS("__layout__", "CN"), INPUTS(variable("data")));
  cohort_group *group = bind_regression(2, 3, NULL);
  cohort_ndarray *batch = NULL;

  (void)state;
  ok(cohort_ndarray_from_host(numbers, sizeof(numbers), SHAPE(3, 2), COHORT_DTYPE_INT32, NULL, &batch));
  forward(group, batch, NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 19, 43, 65);
  cohort_group_free(group);

  group = bind_for_training(symbol, 2, desc("data", SHAPE(2, 3), "CN"), NULL, NO_NAMES, NULL);
  ok(cohort_ndarray_from_host(numbers, sizeof(numbers), SHAPE(2, 3), COHORT_DTYPE_INT32, NULL, &batch));
  forward(group, batch, NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 2, 3, 4, 5, 6);
  cohort_group_free(group);
}

/* FWD-03: another shape is refused, the error names the array, nothing is loaded, and the group stays usable. */
static void a_batch_of_another_shape_is_refused(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 1), 1);
  fails(try_forward(group, counted(SHAPE(3, 2), 2), counted(SHAPE(4, 1), 1), 1), COHORT_ERROR_SHAPE, "data");
  fails(try_forward(group, counted(SHAPE(5, 2), 2), counted(SHAPE(4, 1), 1), 1), COHORT_ERROR_SHAPE, "data");
  fails(try_forward(group, counted(SHAPE(4, 3), 2), counted(SHAPE(4, 1), 1), 1), COHORT_ERROR_SHAPE, "data");
  fails(try_forward(group, counted(SHAPE(8), 2), counted(SHAPE(4, 1), 1), 1), COHORT_ERROR_SHAPE, "data");
  fails(try_forward(group, counted(SHAPE(4, 2), 2), counted(SHAPE(5, 1), 1), 1), COHORT_ERROR_SHAPE, "label");
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 1), 4, 5, 6, 7);
  forward(group, counted(SHAPE(4, 2), 2), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 20, 64, 108, 152);
  cohort_group_free(group);
}

/* FWD-03: on one device, where nothing is sliced, too; the error has the expected and the found shape. */
static void a_batch_of_another_shape_is_refused_by_one_device(void **state) {
  cohort_group *group = bind_regression(1, 4, NULL);

  (void)state;
  fails(try_forward(group, counted(SHAPE(5, 2), 1), NULL, 0), COHORT_ERROR_SHAPE, "(4, 2), found (5, 2)");
  fails(try_forward(group, counted(SHAPE(3, 2), 1), NULL, 0), COHORT_ERROR_SHAPE, "(4, 2), found (3, 2)");
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_group_free(group);
}

/* FWD-04: a batch needs one array per descriptor. */
static void a_batch_with_another_number_of_arrays_is_refused(void **state) {
  cohort_group *group = bind_two_inputs(2, 4, NULL);
  cohort_ndarray *batch[3];
  size_t i;

  (void)state;
  for (i = 0; i < 3; ++i) batch[i] = counted(SHAPE(4, 2), 1);
  fails(cohort_group_forward(group, batch, 1, NULL, 0, 0), COHORT_ERROR_INVALID_ARGUMENT, "1");
  fails(cohort_group_forward(group, batch, 3, NULL, 0, 0), COHORT_ERROR_INVALID_ARGUMENT, "3");
  for (i = 0; i < 3; ++i) cohort_ndarray_free(batch[i]);
  cohort_group_free(group);
}

/* How many of num elements are zero. */
static size_t num_zeros(cohort_ndarray *array, size_t num) {
  float values[64];
  size_t zeros = 0, i;

  assert_true(num <= COUNT(values));
  ok(cohort_ndarray_read(array, values, num * sizeof(float)));
  cohort_ndarray_free(array);
  for (i = 0; i < num; ++i) zeros += values[i] == 0;
  return zeros;
}

static cohort_ndarray *ones(const int64_t *shape, int32_t num_axes) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_full(shape, num_axes, COHORT_DTYPE_FLOAT32, NULL, 1, &array));
  return array;
}

/* FWD-05: -1 runs in the mode the group was bound for; 0 and 1 override it in both kinds of group. Dropout shows which
 * mode ran. */
static void is_train_follows_the_binding_unless_given(void **state) {
  cohort_symbol *dropout = node("Dropout", "d", ATTRS("p", "0.5"), INPUTS(variable("data"))), *same = NULL;
  cohort_group *training, *inference;

  (void)state;
  ok(cohort_symbol_copy(dropout, &same));
  training = bind_for_training(dropout, 2, desc("data", SHAPE(8, 8), "NC"), NULL, NO_NAMES, NULL);
  inference = bind_for_inference(same, 2, desc("data", SHAPE(8, 8), "NC"), NULL, NO_NAMES, NULL);
  forward(training, ones(SHAPE(8, 8)), NULL, -1);
  assert_true(num_zeros(merged(training, COHORT_GROUP_OUTPUTS, 0), 64) > 0);
  forward(training, ones(SHAPE(8, 8)), NULL, 0);
  assert_int_equal(num_zeros(merged(training, COHORT_GROUP_OUTPUTS, 0), 64), 0);
  forward(inference, ones(SHAPE(8, 8)), NULL, -1);
  assert_int_equal(num_zeros(merged(inference, COHORT_GROUP_OUTPUTS, 0), 64), 0);
  forward(inference, ones(SHAPE(8, 8)), NULL, 1);
  assert_true(num_zeros(merged(inference, COHORT_GROUP_OUTPUTS, 0), 64) > 0);
  cohort_group_free(training);
  cohort_group_free(inference);
}

/* FWD-06: training needs the labels that the group is bound with; inference keeps the old ones. */
static void labels_are_needed_in_training_only(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);

  (void)state;
  forward(group, counted(SHAPE(2, 2), 1), counted(SHAPE(2, 1), 5), 1);
  fails(try_forward(group, counted(SHAPE(2, 2), 1), NULL, 1), COHORT_ERROR_INVALID_ARGUMENT, "label");
  forward(group, counted(SHAPE(2, 2), 3), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 30, 96);
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 1), 5);
  cohort_group_free(group);
}

/* FWD-06: there must be as many labels as descriptors; an empty list means no labels, and a group for training needs
 * them. */
static void a_list_of_no_labels_is_no_labels(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_ndarray *data = counted(SHAPE(2, 2), 1), *labels[2];

  (void)state;
  labels[0] = labels[1] = counted(SHAPE(2, 1), 5);
  fails(cohort_group_forward(group, &data, 1, labels, 2, 0), COHORT_ERROR_INVALID_ARGUMENT, "found 2");
  fails(cohort_group_forward(group, &data, 1, labels, 0, 1), COHORT_ERROR_INVALID_ARGUMENT, "label");
  fails(cohort_group_forward(group, &data, 1, NULL, 0, -1), COHORT_ERROR_INVALID_ARGUMENT, "label");
  fails(cohort_group_forward(group, &data, 1, NULL, 1, 0), COHORT_ERROR_INVALID_ARGUMENT, "label");
  ok(cohort_group_forward(group, &data, 1, labels, 1, -1));
  ok(cohort_group_forward(group, &data, 1, labels, 0, 0));
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 1), 5);
  cohort_ndarray_free(data);
  cohort_ndarray_free(labels[0]);
  cohort_group_free(group);
}

/* FWD-06, GRP-13: without label descriptors the label is an ordinary argument, and given labels are ignored. */
static void a_group_bound_without_labels_ignores_them(void **state) {
  cohort_group *group =
      bind_for_training(regression("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), NULL);

  (void)state;
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  assert_int_equal(num_arrays(group, COHORT_GROUP_LABELS), 0);
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(9), 1), 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_group_free(group);
}

/* FWD-07: a batch that the caller has sliced gives the same as the whole batch. */
static void a_batch_may_be_split_already(void **state) {
  cohort_group *group = bind_regression(2, 5, NULL);
  cohort_ndarray *data[3], *label[2];
  size_t i;

  (void)state;
  data[0] = floats(SHAPE(3, 2), FLOATS(0, 1, 2, 3, 4, 5));
  data[1] = floats(SHAPE(2, 2), FLOATS(6, 7, 8, 9));
  data[2] = counted(SHAPE(2, 2), 1);
  label[0] = counted(SHAPE(3, 1), 1);
  label[1] = counted(SHAPE(2, 1), 1);
  ok(cohort_group_forward_presliced(group, 2, data, 1, label, 1, 1));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76, 98);
  fails(cohort_group_forward_presliced(group, 1, data, 1, label, 1, 1), COHORT_ERROR_INVALID_ARGUMENT, "1");
  fails(cohort_group_forward_presliced(group, 3, data, 1, NULL, 0, 0), COHORT_ERROR_INVALID_ARGUMENT, "3");
  data[0] = (cohort_ndarray_free(data[0]), counted(SHAPE(2, 2), 1));
  fails(cohort_group_forward_presliced(group, 2, data, 1, label, 1, 1), COHORT_ERROR_SHAPE, "data");
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76, 98);
  for (i = 0; i < COUNT(data); ++i) cohort_ndarray_free(data[i]);
  for (i = 0; i < COUNT(label); ++i) cohort_ndarray_free(label[i]);
  cohort_group_free(group);
}

/* FWD-07: sliced labels are checked like sliced data, before anything is loaded. */
static void split_labels_are_checked_too(void **state) {
  cohort_group *group = bind_regression(2, 3, NULL);
  cohort_ndarray *data[2], *label[4];

  (void)state;
  data[0] = counted(SHAPE(2, 2), 1);
  data[1] = counted(SHAPE(1, 2), 1);
  label[0] = label[1] = label[2] = label[3] = counted(SHAPE(2, 1), 7);
  fails(cohort_group_forward_presliced(group, 2, data, 1, label, 1, 1), COHORT_ERROR_SHAPE, "label");
  fails(cohort_group_forward_presliced(group, 2, data, 1, label, 2, 1), COHORT_ERROR_INVALID_ARGUMENT, "found");
  fails(cohort_group_forward_presliced(group, 2, data, 1, NULL, 0, 1), COHORT_ERROR_INVALID_ARGUMENT, "label");
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 0, 0, 0);
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 0), 0, 0);
  cohort_ndarray_free(data[0]);
  cohort_ndarray_free(data[1]);
  cohort_ndarray_free(label[0]);
  cohort_group_free(group);
}

/* FWD-08: loading alone runs nothing, and an empty list of labels keeps the old ones. */
static void loading_runs_nothing(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_ndarray *data = counted(SHAPE(2, 2), 1), *label = counted(SHAPE(2, 1), 5);

  (void)state;
  ok(cohort_group_load(group, &data, 1, &label, 1));
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 1), 2, 3);
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 1), 5);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 0);
  ok(cohort_group_load(group, &data, 1, NULL, 0));
  fails(cohort_group_load(group, &data, 1, NULL, 1), COHORT_ERROR_INVALID_ARGUMENT, "label");
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 1), 5);
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_group_free(group);
}

/* FWD-09: all devices run; a failure on one is reported at the next wait, and the others' outputs are valid. */
static void failed_work_of_a_device_comes_out_at_the_wait(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *output;
  float values[2];

  (void)state;
  cohort_group_free(group);
  assert_int_equal(setenv("COHORT_FAULT", "fc", 1), 0);
  group = bind_regression(2, 4, NULL);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0); /* queued: no error yet */
  fails(cohort_group_wait(group), COHORT_ERROR_EXECUTION, "fc");
  output = device_array(group, COHORT_GROUP_OUTPUTS, 0, 1);
  fails(cohort_ndarray_read(output, values, sizeof(values)), COHORT_ERROR_EXECUTION, "fc");
  cohort_ndarray_free(output);
  cohort_group_free(group);
}

/* FWD-10: operators that combine samples see only their slice: a gradient divided by the batch size is divided by the
 * slice's. */
static void a_normalised_loss_divides_by_the_slice(void **state) {
  const char *const words[] = {"null", "batch", "valid"};
  size_t w;

  (void)state;
  for (w = 0; w < COUNT(words); ++w) {
    const float part = w ? .5f : 1; /* two devices, each divides by two */
    cohort_symbol *loss =
        node("SoftmaxOutput", "softmax", ATTRS("normalization", words[w]), INPUTS(linear("2"), variable("label")));
    cohort_symbol *same = NULL;
    cohort_group *group;

    /* Weights are zero, so both classes have 1/2: each row x of class 0 adds -x/2 to its weights and x/2 to the
     * other's. */
    ok(cohort_symbol_copy(loss, &same));
    group = bind_for_training(loss, 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4), NULL),
                              NAMES("fc_weight"), NULL);
    forward(group, counted(SHAPE(4, 2), 1), floats(SHAPE(4), FLOATS(0, 0, 0, 0)), 1);
    backward(group, NULL);
    holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), -1 * part, -2 * part, 1 * part, 2 * part);
    holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), -5 * part, -6 * part, 5 * part, 6 * part);
    cohort_group_free(group);
    group = bind_for_training(same, 1, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4), NULL),
                              NAMES("fc_weight"), NULL);
    forward(group, counted(SHAPE(4, 2), 1), floats(SHAPE(4), FLOATS(0, 0, 0, 0)), 1);
    backward(group, NULL);
    holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), w ? -1.5f : -6, w ? -2 : -8, w ? 1.5f : 6, w ? 2 : 8);
    cohort_group_free(group);
  }
}

/* FWD-10: BatchNorm uses mean and variance of its device's slice: here of 1 and 3, and of 10 and 30. */
static void batch_statistics_are_those_of_a_slice(void **state) {
  cohort_symbol *symbol = node("BatchNorm", "bn", ATTRS("eps", "0.001"), INPUTS(variable("data")));
  cohort_group *group =
      bind_for_training(symbol, 2, desc("data", SHAPE(4, 1), NULL), NULL, NAMES("bn_gamma", "bn_beta"), NULL);

  (void)state;
  forward(group, floats(SHAPE(4, 1), FLOATS(1, 3, 10, 30)), NULL, 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), -.9995004f, .9995004f, -.999995f, .999995f);
  cohort_group_free(group);
}

/* FWD-08: running before loading uses zeros; a loaded batch can be run any number of times. */
static void loading_and_running_are_apart(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_ndarray *data = counted(SHAPE(2, 2), 1);

  (void)state;
  ok(cohort_group_run(group, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 0);
  ok(cohort_group_load(group, &data, 1, NULL, 0));
  cohort_ndarray_free(data);
  ok(cohort_group_run(group, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(0, 1)));
  ok(cohort_group_run(group, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 1, 3);
  cohort_group_free(group);
}

/* The caller may free or overwrite its arrays as soon as the call returns; wrapped memory once the group is done. */
static void the_caller_may_free_its_batch_at_once(void **state) {
  float memory[] = {0, 1, 2, 3, 4, 5, 6, 7};
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *data = NULL;

  (void)state;
  ok(cohort_ndarray_wrap(memory, SHAPE(4, 2), COHORT_DTYPE_FLOAT32, NULL, NULL, NULL, &data));
  forward(group, data, NULL, 0);
  ok(cohort_group_wait(group));
  memset(memory, 0, sizeof(memory));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_group_free(group);
}

/* OUT-01, OUT-03: unmerged outputs are the devices' own arrays; without batch axis the merged output is device 0's. */
static void outputs_are_read_merged_or_by_device(void **state) {
  cohort_symbol *symbol = node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "True", "__layout__", "CD"),
                               INPUTS(variable("data")));
  cohort_group *group = bind_regression(2, 3, NULL);

  (void)state;
  forward(group, counted(SHAPE(3, 2), 1), NULL, 0);
  holds_free(device_array(group, COHORT_GROUP_OUTPUTS, 0, 0), 10, 32);
  holds_free(device_array(group, COHORT_GROUP_OUTPUTS, 0, 1), 54);
  cohort_group_free(group);

  group = bind_for_training(symbol, 2, desc("data", SHAPE(3, 2), NULL), NULL, NAMES("fc_weight"), NULL);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  forward(group, counted(SHAPE(3, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32);
  cohort_group_free(group);
}

/* OUT-06: an output index out of range is refused. */
static void an_output_that_there_is_not_is_refused(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *array = NULL;

  (void)state;
  fails(cohort_group_merged(group, COHORT_GROUP_OUTPUTS, 1, &array), COHORT_ERROR_INVALID_ARGUMENT, "1");
  fails(cohort_group_array(group, COHORT_GROUP_OUTPUTS, 1, 0, &array), COHORT_ERROR_INVALID_ARGUMENT, "1");
  fails(cohort_group_array(group, COHORT_GROUP_OUTPUTS, 0, 2, &array), COHORT_ERROR_INVALID_ARGUMENT, "2");
  fails(cohort_group_array(group, 99, 0, 0, &array), COHORT_ERROR_INVALID_ARGUMENT, "99");
  assert_null(array);
  cohort_group_free(group);
}

/* OUT-07, GRP-15: before the first pass outputs are zeros of the right shape. */
static void outputs_are_zeros_before_the_first_pass(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *output = merged(group, COHORT_GROUP_OUTPUTS, 0);

  (void)state;
  has_shape(output, 4, 1);
  holds_free(output, 0, 0, 0, 0);
  cohort_group_free(group);
}

/* OUT-08: a handle on a device's output shows the results of later passes. */
static void a_handle_on_an_output_is_live(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_ndarray *output = device_array(group, COHORT_GROUP_OUTPUTS, 0, 0);

  (void)state;
  forward(group, counted(SHAPE(2, 2), 1), NULL, 0);
  holds(output, 10, 32);
  forward(group, counted(SHAPE(2, 2), 2), NULL, 0);
  holds(output, 20, 64);
  cohort_group_free(group);
  holds_free(output, 20, 64); /* the handle outlives the group */
}

/* GRP-20: names and shapes of the merged outputs are known before any pass. */
static void output_shapes_are_those_of_the_whole_batch(void **state) {
  cohort_group *group = bind_regression(2, 5, NULL);
  int64_t shape[COHORT_MAX_AXES];
  cohort_descs *descs = NULL;
  const char *name = NULL;
  int32_t num_axes = 0;
  size_t num = 0;

  (void)state;
  ok(cohort_group_output_shapes(group, &descs));
  ok(cohort_descs_num(descs, &num));
  assert_int_equal(num, 1);
  ok(cohort_descs_get(descs, 0, &name, shape, COHORT_MAX_AXES, &num_axes, NULL, NULL));
  assert_string_equal(name, "lro_output");
  assert_int_equal(num_axes, 2);
  assert_int_equal(shape[0], 5);
  assert_int_equal(shape[1], 1);
  cohort_descs_free(descs);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_result_is_that_of_one_device),
      TEST(each_device_gets_its_slice),
      TEST(the_batch_axis_need_not_be_the_first),
      TEST(an_input_without_batch_axis_goes_whole_to_each_device),
      TEST(a_batch_of_another_dtype_is_converted),
      TEST(a_batch_of_another_shape_is_refused),
      TEST(a_batch_of_another_shape_is_refused_by_one_device),
      TEST(a_batch_with_another_number_of_arrays_is_refused),
      TEST(is_train_follows_the_binding_unless_given),
      TEST(labels_are_needed_in_training_only),
      TEST(a_list_of_no_labels_is_no_labels),
      TEST(a_group_bound_without_labels_ignores_them),
      TEST(a_batch_may_be_split_already),
      TEST(split_labels_are_checked_too),
      TEST(loading_runs_nothing),
      TEST(failed_work_of_a_device_comes_out_at_the_wait),
      TEST(a_normalised_loss_divides_by_the_slice),
      TEST(batch_statistics_are_those_of_a_slice),
      TEST(loading_and_running_are_apart),
      TEST(the_caller_may_free_its_batch_at_once),
      TEST(outputs_are_read_merged_or_by_device),
      TEST(an_output_that_there_is_not_is_refused),
      TEST(outputs_are_zeros_before_the_first_pass),
      TEST(a_handle_on_an_output_is_live),
      TEST(output_shapes_are_those_of_the_whole_batch),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
