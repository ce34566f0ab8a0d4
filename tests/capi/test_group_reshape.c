/* SPDX-License-Identifier: Apache-2.0 */
/* Binding again and reshaping: BND-01 to BND-13, DIF-16. More of it is in test_group_bind. */
#include "support/group_tests.h"

static cohort_error *try_reshape(cohort_group *group, cohort_descs *data, cohort_descs *label) {
  cohort_error *error = cohort_group_reshape(group, data, label);

  cohort_descs_free(data);
  cohort_descs_free(label);
  return error;
}

static void reshape(cohort_group *group, cohort_descs *data, cohort_descs *label) {
  ok(try_reshape(group, data, label));
}

/* Reshapes bind_regression() to a batch of this size. */
static void reshape_to(cohort_group *group, int64_t batch) {
  reshape(group, desc("data", SHAPE(batch, 2), NULL), desc("label", SHAPE(batch, 1), NULL));
}

static void *memory_of(const cohort_group *group, int32_t list, size_t index, size_t device) {
  cohort_ndarray *array = device_array(group, list, index, device);
  void *data = NULL;

  data = address_of(array);
  cohort_ndarray_free(array);
  return data;
}

static void shape_is(const cohort_group *group, int32_t list, size_t index, size_t device, int64_t rows, int64_t cols) {
  cohort_ndarray *array = device_array(group, list, index, device);

  has_shape(array, rows, cols);
  cohort_ndarray_free(array);
}

static void slice_is(const cohort_group *group, size_t device, int64_t begin, int64_t end) {
  int64_t found_begin = -1, found_end = -1;

  ok(cohort_group_slice(group, device, &found_begin, &found_end));
  assert_int_equal(found_begin, begin);
  assert_int_equal(found_end, end);
}

/* Checks batch size, slices, axes and shapes for a batch of five on two devices, transposed. */
static void is_bound_to_five_columns(const cohort_group *group) {
  int64_t batch_size = -1;
  int32_t axis = -7;

  ok(cohort_group_batch_size(group, &batch_size));
  assert_int_equal(batch_size, 5);
  slice_is(group, 0, 0, 3);
  slice_is(group, 1, 3, 5);
  ok(cohort_group_axis(group, COHORT_GROUP_DATA, 0, &axis));
  assert_int_equal(axis, 1);
  shape_is(group, COHORT_GROUP_DATA, 0, 0, 2, 3);
  shape_is(group, COHORT_GROUP_OUTPUTS, 0, 1, 2, 2);
}

static cohort_group *bind_relu(size_t num_contexts, int64_t rows, int64_t cols, const char *layout,
                               const cohort_group_options *options) {
  return bind_for_training(node("relu", "r", NO_ATTRS, INPUTS(variable("data"))), num_contexts,
                           desc("data", SHAPE(rows, cols), layout), NULL, NO_NAMES, options);
}

/* BND-01: binding again and reshaping recompute batch size, slices and axes, and give arrays of the new shapes. */
static void batch_size_slices_and_axes_are_worked_out_anew(void **state) {
  cohort_group *group = bind_relu(2, 4, 2, "NC", NULL);
  cohort_descs *data = desc("data", SHAPE(2, 5), "CN");

  (void)state;
  reshape(group, desc("data", SHAPE(2, 5), "CN"), NULL);
  is_bound_to_five_columns(group);
  cohort_group_free(group);
  group = bind_relu(2, 4, 2, "NC", NULL);
  ok(cohort_group_bind(group, data, NULL, NULL, 1));
  is_bound_to_five_columns(group);
  cohort_descs_free(data);
  cohort_group_free(group);
}

/* BND-01, BND-02: when bound again, a group may share memory with another; a bind that is refused leaves the group as
 * it was. */
static void a_bind_that_fails_changes_nothing(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL), *other = bind_regression(2, 12, NULL);
  cohort_descs *data = desc("data", SHAPE(6, 2), NULL), *label = desc("label", SHAPE(5, 1), NULL);
  cohort_descs *wide = desc("data", SHAPE(6, 3), NULL);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  fails(cohort_group_bind(group, data, label, NULL, 1), COHORT_ERROR_SHAPE, "label");
  fails(cohort_group_bind(group, wide, NULL, other, 1), COHORT_ERROR_SHAPE, "fc_weight");
  slice_is(group, 1, 2, 4);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 64, 106);
  set_param(other, "fc_weight", floats(SHAPE(1, 2), FLOATS(2, 20)));
  ok(cohort_group_bind(group, data, NULL, other, 1));
  forward(group, counted(SHAPE(6, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 20, 64, 108, 152, 196, 240);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_descs_free(wide);
  cohort_group_free(other);
  cohort_group_free(group);
}

/* BND-03, BND-04: a reshape from large to small and back gives the same memory; parameters and their gradients never
 * move. */
static void small_batches_lie_in_the_memory_of_large_ones(void **state) {
  cohort_group *group = bind_regression(2, 8, NULL);
  void *const data = memory_of(group, COHORT_GROUP_DATA, 0, 1), *const label =
                                                                    memory_of(group, COHORT_GROUP_LABELS, 0, 1);
  void *const weight = memory_of(group, COHORT_GROUP_PARAMS, 0, 1), *const grad =
                                                                        memory_of(group, COHORT_GROUP_GRADS, 0, 1);
  const int64_t batches[] = {4, 8, 6, 8};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(batches); ++i) {
    reshape_to(group, batches[i]);
    shape_is(group, COHORT_GROUP_DATA, 0, 1, batches[i] / 2, 2);
    assert_ptr_equal(memory_of(group, COHORT_GROUP_DATA, 0, 1), data);
    assert_ptr_equal(memory_of(group, COHORT_GROUP_LABELS, 0, 1), label);
    assert_ptr_equal(memory_of(group, COHORT_GROUP_PARAMS, 0, 1), weight);
    assert_ptr_equal(memory_of(group, COHORT_GROUP_GRADS, 0, 1), grad);
  }
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 1, 10);
  cohort_group_free(group);
}

/* BND-03, BND-04: a larger batch gets new arrays; an earlier executor keeps its own, and runs on them. */
static void large_batches_get_new_arrays(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  void *const data = memory_of(group, COHORT_GROUP_DATA, 0, 0), *const weight =
                                                                    memory_of(group, COHORT_GROUP_PARAMS, 0, 0);
  cohort_executor *before = NULL;
  cohort_ndarray *old_data = device_array(group, COHORT_GROUP_DATA, 0, 0), *output = NULL;

  (void)state;
  forward(group, counted(SHAPE(2, 2), 1), NULL, 0);
  ok(cohort_group_executor(group, 0, &before));
  reshape_to(group, 40);
  assert_ptr_not_equal(memory_of(group, COHORT_GROUP_DATA, 0, 0), data);
  assert_ptr_equal(memory_of(group, COHORT_GROUP_PARAMS, 0, 0), weight);
  forward(group, counted(SHAPE(40, 2), 5), NULL, 0);
  holds_free(old_data, 0, 1, 2, 3);
  ok(cohort_executor_forward(before, 0));
  ok(cohort_executor_array(before, COHORT_EXECUTOR_OUTPUTS, 0, &output));
  holds_free(output, 10, 32);
  cohort_executor_free(before);
  reshape_to(group, 1); /* a new shape: its executor is made from the arrays bound first, not from the forty */
  assert_ptr_equal(memory_of(group, COHORT_GROUP_DATA, 0, 0), data);
  reshape_to(group, 2);
  assert_ptr_equal(memory_of(group, COHORT_GROUP_DATA, 0, 0), data);
  cohort_group_free(group);
}

/* BatchNorm over two features of `rows` rows: aux states, and a gamma that is a parameter. */
static cohort_group *bind_batch_norm(int64_t rows) {
  cohort_symbol *bn = node("BatchNorm", "bn", ATTRS("fix_gamma", "False"), INPUTS(variable("data")));

  return bind_for_training(bn, 1, desc("data", SHAPE(rows, 2), NULL), NULL, NAMES("bn_gamma"), NULL);
}

/* BND-04: auxiliary states keep memory and values. BND-07: they and parameters may not change shape; other arrays
 * may. */
static void auxiliary_states_stay_over_a_reshape(void **state) {
  cohort_group *group = bind_batch_norm(4);
  void *const mean = memory_of(group, COHORT_GROUP_AUX, 0, 0);

  (void)state;
  fill(device_array(group, COHORT_GROUP_AUX, 0, 0), 3);
  reshape(group, desc("data", SHAPE(8, 2), NULL), NULL);
  assert_ptr_equal(memory_of(group, COHORT_GROUP_AUX, 0, 0), mean);
  holds_free(device_array(group, COHORT_GROUP_AUX, 0, 0), 3, 3);
  fails(try_reshape(group, desc("data", SHAPE(8, 3), NULL), NULL), COHORT_ERROR_SHAPE, "bn_gamma");
  cohort_group_free(group);
  group = bind_for_training(node("BatchNorm", "bn", NO_ATTRS, INPUTS(variable("data"))), 1,
                            desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, NULL);
  fails(try_reshape(group, desc("data", SHAPE(8, 3), NULL), NULL), COHORT_ERROR_SHAPE, "bn_moving_mean");
  shape_is(group, COHORT_GROUP_DATA, 0, 0, 4, 2);
  cohort_group_free(group);
}

/* BND-05, BND-06: arrays that grow start at zero each time; grad_req "add" is kept, and adds to zeros. */
static void grown_gradients_start_at_zero(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;
  int round;

  (void)state;
  options.inputs_need_grad = 1;
  options.grad_req = "add";
  group = bind_regression(1, 1, &options);
  forward(group, counted(SHAPE(1, 2), 1), counted(SHAPE(1, 1), 0), 1);
  backward(group, NULL);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0), 20, 200);
  for (round = 0; round < 2; ++round) {
    fill(device_array(group, COHORT_GROUP_GRADS, 0, 0), 7);
    reshape_to(group, 2);
    holds_free(device_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0), 0, 0, 0, 0);
    forward(group, counted(SHAPE(2, 2), 1), counted(SHAPE(2, 1), 0), 1);
    backward(group, NULL);
    holds_free(device_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0), 10, 100, 32, 320);
    holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 7 + 64,
               7 + 106); /* the array of a parameter stays, and is added to */
    reshape_to(group, 1);
  }
  reshape_to(group, 3);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 0, 0, 0, 0, 0);
  holds_free(device_array(group, COHORT_GROUP_LABELS, 0, 0), 0, 0, 0);
  cohort_group_free(group);
}

static void count_calls(const char *name, cohort_ndarray *array, void *user_data) {
  (void)array;
  if (strcmp(name, "r_output") == 0) ++*(int *)user_data;
}

/* BND-06: a monitor and the contexts of node groups stay. */
static void monitors_and_contexts_stay_over_a_reshape(void **state) {
  const char *const names[] = {"late"};
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 7}};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_symbol *late = node("relu", "r", ATTRS("__ctx_group__", "late"), INPUTS(linear("1")));
  cohort_context context = {0, 0};
  cohort_group *group;
  cohort_ndarray *output;
  int num_calls = 0;

  (void)state;
  options.ctx_group_names = names;
  options.ctx_group_contexts = contexts;
  options.num_ctx_groups = 1;
  group = bind_for_training(late, 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options);
  ok(cohort_group_set_monitor(group, count_calls, &num_calls, 0));
  reshape(group, desc("data", SHAPE(6, 2), NULL), NULL);
  forward(group, counted(SHAPE(6, 2), 1), NULL, 0);
  ok(cohort_group_wait(group));
  assert_int_equal(num_calls, 2);
  output = device_array(group, COHORT_GROUP_OUTPUTS, 0, 1);
  ok(cohort_ndarray_context(output, &context));
  assert_int_equal(context.device_id, 7);
  cohort_ndarray_free(output);
  ok(cohort_group_set_monitor(group, NULL, NULL, 0));
  cohort_group_free(group);
}

/* BND-07: labels without descriptors, states and other arguments follow the batch. */
static void arguments_that_are_no_parameters_follow_the_batch(void **state) {
  const char *const states[] = {"memory"};
  cohort_symbol *sum = node("elemwise_add", "sum", NO_ATTRS, INPUTS(linear("1"), variable("memory")));
  cohort_symbol *more = node("elemwise_add", "more", NO_ATTRS, INPUTS(sum, variable("other")));
  cohort_symbol *loss = node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(more, variable("label")));
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *label;
  cohort_group *group;
  const double one = 1;

  (void)state;
  options.state_names = states;
  options.num_state_names = 1;
  group = bind_for_training(loss, 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  reshape(group, desc("data", SHAPE(6, 2), NULL), NULL);
  ok(cohort_group_set_states(group, NULL, 0, 0, &one));
  fill(device_array(group, COHORT_GROUP_ARGS, 3, 1), 100);
  forward(group, counted(SHAPE(6, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 11, 33, 55, 177, 199, 221);
  label = device_array(group, COHORT_GROUP_ARGS, 4, 1);
  has_shape(label, 3);
  cohort_ndarray_free(label);
  fails(try_reshape(group, desc("data", SHAPE(6, 3), NULL), NULL), COHORT_ERROR_SHAPE, "fc_weight");
  cohort_group_free(group);
}

/* BND-08: another layout alone is a change too, and slices the batch differently; another dtype is refused. */
static void another_layout_splits_another_way(void **state) {
  cohort_group *group = bind_relu(2, 2, 2, "NC", NULL);
  cohort_descs *wide = NULL;

  (void)state;
  forward(group, counted(SHAPE(2, 2), 1), NULL, 0);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 1);
  reshape(group, desc("data", SHAPE(2, 2), "CN"), NULL);
  forward(group, counted(SHAPE(2, 2), 1), NULL, 0);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 0), 0, 2);
  ok(cohort_descs_create(&wide));
  ok(cohort_descs_add(wide, "data", SHAPE(2, 2), COHORT_DTYPE_FLOAT64, "CN"));
  fails(try_reshape(group, wide, NULL), COHORT_ERROR_DTYPE, "'data': expected the bound dtype float32, found float64");
  holds_free(device_array(group, COHORT_GROUP_OUTPUTS, 0, 1), 1, 3);
  cohort_group_free(group);
}

/* BND-10: without labels their names and axes are gone, and metrics have nothing to compare. Labels may come back. */
static void dropped_labels_leave_nothing_behind(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *label = counted(SHAPE(4, 1), 0), *array = NULL;
  cohort_metric *metric = NULL;
  const char *name = NULL;
  int32_t axis = -7;

  (void)state;
  reshape(group, desc("data", SHAPE(4, 2), NULL), NULL);
  assert_int_equal(num_arrays(group, COHORT_GROUP_LABELS), 0);
  fails(cohort_group_name(group, COHORT_GROUP_LABELS, 0, &name), COHORT_ERROR_INVALID_ARGUMENT, "0 entries");
  fails(cohort_group_axis(group, COHORT_GROUP_LABELS, 0, &axis), COHORT_ERROR_INVALID_ARGUMENT, "0 entries");
  fails(cohort_group_array(group, COHORT_GROUP_LABELS, 0, 0, &array), COHORT_ERROR_INVALID_ARGUMENT, "0 entries");
  assert_null(array);
  ok(cohort_metric_create("mae", NULL, NULL, 0, &metric));
  fails(cohort_group_update_metric(group, metric, &label, 1), COHORT_ERROR_STATE, "labels");
  reshape_to(group, 4);
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  ok(cohort_group_update_metric(group, metric, &label, 1));
  cohort_metric_free(metric);
  cohort_ndarray_free(label);
  cohort_group_free(group);
}

/* BND-11: a group refuses a batch of another shape; the caller may reshape the group to the batch. BND-13: names and
 * shapes suffice for that. */
static void a_host_may_reshape_to_a_batch(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *batch = counted(SHAPE(2, 2), 1);
  cohort_descs *bound = NULL, *data = NULL;
  const char *name = NULL;
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0;

  (void)state;
  fails(cohort_group_load(group, &batch, 1, NULL, 0), COHORT_ERROR_SHAPE,
        "'data': expected shape (4, 2), found (2, 2)");
  ok(cohort_group_descs(group, COHORT_GROUP_DATA, &bound));
  ok(cohort_descs_get(bound, 0, &name, NULL, 0, NULL, NULL, NULL));
  ok(cohort_ndarray_shape(batch, shape, COHORT_MAX_AXES, &num_axes));
  ok(cohort_descs_create(&data));
  ok(cohort_descs_add(data, name, shape, num_axes, COHORT_DTYPE_NONE, NULL));
  reshape(group, data, NULL);
  ok(cohort_group_forward(group, &batch, 1, NULL, 0, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32);
  cohort_descs_free(bound);
  cohort_ndarray_free(batch);
  cohort_group_free(group);
}

/* BND-12: outputs that were read before stay readable until the next pass. */
static void outputs_of_before_can_be_read_after_a_reshape(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *whole, *part;

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  whole = merged(group, COHORT_GROUP_OUTPUTS, 0);
  part = device_array(group, COHORT_GROUP_OUTPUTS, 0, 1);
  reshape_to(group, 2);
  has_shape(whole, 4, 1);
  holds_free(whole, 10, 32, 54, 76);
  holds(part, 54, 76);
  cohort_group_free(group);
  has_shape(part, 2, 1);
  cohort_ndarray_free(part);
}

/* DIF-16, BND-03: the new descriptors are compared with the current ones: going back to earlier ones is a change. */
static void back_to_the_first_shape_is_a_change(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);

  (void)state;
  reshape_to(group, 6);
  reshape_to(group, 4);
  shape_is(group, COHORT_GROUP_DATA, 0, 0, 2, 2);
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  reshape_to(group, 4); /* no change: backward needs no new forward */
  backward(group, NULL);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(batch_size_slices_and_axes_are_worked_out_anew),
      TEST(a_bind_that_fails_changes_nothing),
      TEST(small_batches_lie_in_the_memory_of_large_ones),
      TEST(large_batches_get_new_arrays),
      TEST(auxiliary_states_stay_over_a_reshape),
      TEST(grown_gradients_start_at_zero),
      TEST(monitors_and_contexts_stay_over_a_reshape),
      TEST(arguments_that_are_no_parameters_follow_the_batch),
      TEST(another_layout_splits_another_way),
      TEST(dropped_labels_leave_nothing_behind),
      TEST(a_host_may_reshape_to_a_batch),
      TEST(outputs_of_before_can_be_read_after_a_reshape),
      TEST(back_to_the_first_shape_is_a_change),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
