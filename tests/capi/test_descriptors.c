/* SPDX-License-Identifier: Apache-2.0 */
/* How a group uses descriptors: DSC-01, DSC-03 to DSC-06, DSC-10, DSC-11, DSC-13. The rest is in test_group_bind. */
#include "support/group_tests.h"

/* A list of one descriptor made from `name` and `shape` only. */
static cohort_descs *bare(const char *name, const int64_t *shape, int32_t num_axes) {
  cohort_descs *descs = NULL;

  ok(cohort_descs_create(&descs));
  ok(cohort_descs_add(descs, name, shape, num_axes, COHORT_DTYPE_NONE, NULL));
  return descs;
}

static void reshape(cohort_group *group, cohort_descs *data, cohort_descs *label) {
  ok(cohort_group_reshape(group, data, label));
  cohort_descs_free(data);
  cohort_descs_free(label);
}

static void refused(cohort_descs *data, cohort_descs *label, const char *words) {
  cohort_group *group = NULL;

  fails(try_bind(&group, regression("1"), 2, data, label, NAMES("fc_weight"), NULL), COHORT_ERROR_SHAPE, words);
  assert_null(group);
}

/* Checks name, dtype and layout of the only data descriptor of `group`. */
static void data_is(const cohort_group *group, const char *name, int32_t dtype, const char *layout) {
  cohort_descs *descs = NULL;
  const char *found_name = NULL, *found_layout = NULL;
  int32_t found_dtype = -7;

  ok(cohort_group_descs(group, COHORT_GROUP_DATA, &descs));
  ok(cohort_descs_get(descs, 0, &found_name, NULL, 0, NULL, &found_dtype, &found_layout));
  assert_string_equal(found_name, name);
  assert_int_equal(found_dtype, dtype);
  assert_string_equal(found_layout, layout);
  cohort_descs_free(descs);
}

/* DSC-01: a descriptor of name and shape only is equal to one of float32 in layout NCHW, and to no other. If a group
 * took a reshape to an equal descriptor for a change, it would need a forward before backward. */
static void a_name_and_a_shape_are_a_descriptor(void **state) {
  cohort_group *group = bind_for_training(regression("1"), 2, bare("data", SHAPE(4, 2)), bare("label", SHAPE(4, 1)),
                                          NAMES("fc_weight"), NULL);

  (void)state;
  data_is(group, "data", COHORT_DTYPE_FLOAT32, "NCHW");
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 1), 1);
  reshape(group, desc("data", SHAPE(4, 2), "NCHW"), bare("label", SHAPE(4, 1)));
  backward(group, NULL);
  reshape(group, desc("data", SHAPE(4, 2), "NC"), bare("label", SHAPE(4, 1)));
  fails(try_backward(group, NULL), COHORT_ERROR_STATE, "forward");
  cohort_group_free(group);
}

/* DSC-03: a layout may be longer or shorter than the shape, as long as the batch axis is in it. */
static void a_layout_need_not_have_the_length_of_the_shape(void **state) {
  cohort_group *group = bind_for_training(node("relu", "r", NO_ATTRS, INPUTS(variable("data"))), 2,
                                          desc("data", SHAPE(4), "NCHW"), NULL, NO_NAMES, NULL);

  (void)state;
  forward(group, counted(SHAPE(4), 1), NULL, 0);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 1), 2, 3);
  reshape(group, desc("data", SHAPE(2, 3, 1), "CN"), NULL);
  forward(group, counted(SHAPE(2, 3, 1), 1), NULL, 0);
  holds_free(device_array(group, COHORT_GROUP_DATA, 0, 1), 2, 5);
  cohort_group_free(group);
  refused(desc("data", SHAPE(4, 2), "CDN"), NULL, "'data': shape (4, 2) has no axis 2");
  refused(desc("data", SHAPE(4, 2), NULL), desc("label", NULL, 0, NULL), "'label': shape () has no axis 0");
}

/* DSC-04: the first descriptor with a batch axis gives the batch size; those without one do not. */
static void the_first_batched_descriptor_sets_the_batch_size(void **state) {
  cohort_descs *data = desc("fc_weight", SHAPE(1, 2), "CD");
  int64_t batch_size = -1;
  cohort_group *group;

  (void)state;
  add_desc(data, "data", SHAPE(4, 2), "NC");
  group = bind_for_training(regression("1"), 2, data, desc("label", SHAPE(4, 1), NULL), NO_NAMES, NULL);
  ok(cohort_group_batch_size(group, &batch_size));
  assert_int_equal(batch_size, 4);
  cohort_group_free(group);
  refused(desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(6, 1), NULL),
          "same batch size: 'label' of shape (6, 1) has 6 on axis 0, expected 4");
  data = desc("data", SHAPE(4, 2), NULL);
  add_desc(data, "label", SHAPE(1, 6), "TN");
  refused(data, NULL, "same batch size: 'label' of shape (1, 6) has 6 on axis 1, expected 4");
}

/* DSC-05: axes can be looked up for any descriptors of the group's batch size; if the group's own have no batch axis,
 * they only have to agree with one another. Neither changes the group. */
static void axes_are_decided_without_changing_the_group(void **state) {
  cohort_group *group = bind_for_training(node("relu", "r", NO_ATTRS, INPUTS(variable("data"))), 2,
                                          desc("data", SHAPE(3), "C"), NULL, NO_NAMES, NULL);
  cohort_descs *descs = desc("a", SHAPE(2, 5), "TN");
  int32_t axes[2] = {-7, -7};
  int64_t batch_size = -1;

  (void)state;
  ok(cohort_group_decide_slices(group, descs, axes));
  assert_int_equal(axes[0], 1);
  add_desc(descs, "b", SHAPE(6), NULL);
  fails(cohort_group_decide_slices(group, descs, axes), COHORT_ERROR_SHAPE, "'b' of shape (6,) has 6");
  cohort_group_free(group);
  group = bind_regression(2, 6, NULL);
  fails(cohort_group_decide_slices(group, descs, axes), COHORT_ERROR_SHAPE, "'a' of shape (2, 5) has 5");
  ok(cohort_group_batch_size(group, &batch_size));
  assert_int_equal(batch_size, 6);
  cohort_descs_free(descs);
  cohort_group_free(group);
}

/* DSC-06: name, dtype and layout stay; the caller may give the axes. */
static void a_slice_keeps_all_but_the_length(void **state) {
  cohort_group *group = bind_regression(2, 5, NULL);
  cohort_descs *descs = NULL, *sliced = NULL;
  const int32_t axes[] = {1, -1}, beyond[] = {0, 2};
  const char *name = NULL, *layout = NULL;
  int64_t shape[COHORT_MAX_AXES];
  int32_t dtype = -7;

  (void)state;
  ok(cohort_descs_create(&descs));
  ok(cohort_descs_add(descs, "a", SHAPE(5, 5), COHORT_DTYPE_UINT8, "NC"));
  ok(cohort_descs_add(descs, "b", SHAPE(5, 7), COHORT_DTYPE_FLOAT16, "NC"));
  ok(cohort_group_sliced_shape(group, descs, 0, NULL, &sliced));
  ok(cohort_descs_get(sliced, 0, &name, shape, COHORT_MAX_AXES, NULL, &dtype, &layout));
  assert_string_equal(name, "a");
  assert_int_equal(dtype, COHORT_DTYPE_UINT8);
  assert_string_equal(layout, "NC");
  assert_true(shape[0] == 3 && shape[1] == 5);
  cohort_descs_free(sliced);
  ok(cohort_group_sliced_shape(group, descs, 1, axes, &sliced));
  ok(cohort_descs_get(sliced, 0, NULL, shape, COHORT_MAX_AXES, NULL, NULL, NULL));
  assert_true(shape[0] == 5 && shape[1] == 2);
  ok(cohort_descs_get(sliced, 1, NULL, shape, COHORT_MAX_AXES, NULL, &dtype, NULL));
  assert_true(shape[0] == 5 && shape[1] == 7);
  assert_int_equal(dtype, COHORT_DTYPE_FLOAT16);
  cohort_descs_free(sliced);
  sliced = NULL;
  fails(cohort_group_sliced_shape(group, descs, 2, NULL, &sliced), COHORT_ERROR_INVALID_ARGUMENT, "2");
  fails(cohort_group_sliced_shape(group, descs, 0, beyond, &sliced), COHORT_ERROR_SHAPE, "'b'");
  assert_null(sliced);
  cohort_descs_free(descs);
  cohort_group_free(group);
}

/* DSC-10: where nothing has a batch axis, each device gets all of the data, labels and head gradients, and trains on
 * them; device 0's output is the merged one, unless its layout has a batch axis. */
static void without_a_batch_axis_every_device_does_all(void **state) {
  cohort_group *group = bind_for_training(regression("1"), 2, desc("data", SHAPE(2, 2), "CD"),
                                          desc("label", SHAPE(2, 1), "CD"), NAMES("fc_weight"), NULL);
  cohort_ndarray *label = counted(SHAPE(2, 1), 0), *output;
  cohort_metric *metric = NULL;
  double sum = 0, num = 0;
  int32_t axis = -7;
  size_t d;

  (void)state;
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  forward(group, counted(SHAPE(2, 2), 1), counted(SHAPE(2, 1), 0), 1);
  backward(group, NULL);
  ok(cohort_group_axis(group, COHORT_GROUP_OUTPUTS, 0, &axis));
  assert_int_equal(axis, -1);
  output = merged(group, COHORT_GROUP_OUTPUTS, 0);
  has_shape(output, 2, 1);
  holds_free(output, 10, 32);
  for (d = 0; d < 2; ++d) {
    holds_free(device_array(group, COHORT_GROUP_LABELS, 0, d), 0, 0);
    holds_free(device_array(group, COHORT_GROUP_GRADS, 0, d), 64, 106);
  }
  ok(cohort_metric_create("mae", NULL, NULL, 0, &metric));
  ok(cohort_group_update_metric(group, metric, &label, 1));
  ok(cohort_metric_counters(metric, 0, 0, &sum, &num));
  assert_true(sum == 42 && num == 2);
  cohort_metric_free(metric);
  cohort_ndarray_free(label);
  cohort_group_free(group);

  group = bind_for_training(node("relu", "r", ATTRS("__layout__", "NC"), INPUTS(variable("data"))), 2,
                            desc("data", SHAPE(1, 2), "CD"), NULL, NO_NAMES, NULL);
  forward(group, counted(SHAPE(1, 2), 1), NULL, 0);
  output = merged(group, COHORT_GROUP_OUTPUTS, 0);
  has_shape(output, 2, 2);
  holds_free(output, 0, 1, 0, 1);
  cohort_group_free(group);
}

static void without_a_batch_axis_head_gradients_go_whole_to_every_device(void **state) {
  cohort_group *group =
      bind_for_training(linear("1"), 2, desc("data", SHAPE(2, 2), "CD"), NULL, NAMES("fc_weight"), NULL);

  (void)state;
  forward(group, counted(SHAPE(2, 2), 1), NULL, 1);
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 10)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 20, 31);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 20, 31);
  fails(try_backward(group, floats(SHAPE(4, 1), FLOATS(1, 1, 1, 1))), COHORT_ERROR_SHAPE, "fc_output");
  cohort_group_free(group);
}

/* DSC-13: a batch is its arrays; rows that only pad it are computed and counted like any others. */
static void rows_that_fill_up_a_batch_count_like_the_others(void **state) {
  cohort_group *group = bind_regression(1, 4, NULL);
  cohort_ndarray *label = counted(SHAPE(4, 1), 0);
  cohort_metric *metric = NULL;
  double sum = 0;

  (void)state;
  forward(group, floats(SHAPE(4, 2), FLOATS(0, 1, 2, 3, 4, 5, 4, 5)), counted(SHAPE(4, 1), 0), 1);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 496, 646);
  ok(cohort_metric_create("mae", NULL, NULL, 0, &metric));
  ok(cohort_group_update_metric(group, metric, &label, 1));
  ok(cohort_metric_counters(metric, 0, 0, &sum, NULL));
  assert_true(sum == 37.5);
  cohort_metric_free(metric);
  cohort_ndarray_free(label);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_name_and_a_shape_are_a_descriptor),
      TEST(a_layout_need_not_have_the_length_of_the_shape),
      TEST(the_first_batched_descriptor_sets_the_batch_size),
      TEST(axes_are_decided_without_changing_the_group),
      TEST(a_slice_keeps_all_but_the_length),
      TEST(without_a_batch_axis_every_device_does_all),
      TEST(without_a_batch_axis_head_gradients_go_whole_to_every_device),
      TEST(rows_that_fill_up_a_batch_count_like_the_others),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
