/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, binding, binding again and reshaping: DSC-01 to DSC-10, GRP-15 to GRP-17, BND-02 to BND-10, DIF-17. */
#include "support/group_tests.h"

static void batch_axis_is(const char *layout, int32_t expected) {
  int32_t axis = -7;

  ok(cohort_layout_batch_axis(layout, &axis));
  assert_int_equal(axis, expected);
}

/* Binds regression("1") on two devices. */
static cohort_error *try_bind_two(cohort_group **out_group, cohort_descs *data, cohort_descs *label) {
  return try_bind(out_group, regression("1"), 2, data, label, NAMES("fc_weight"), NULL);
}

static void refused(cohort_descs *data, cohort_descs *label, int32_t code, const char *words) {
  cohort_group *group = NULL;

  fails(try_bind_two(&group, data, label), code, words);
  assert_null(group);
}

static cohort_error *try_reshape(cohort_group *group, cohort_descs *data, cohort_descs *label) {
  cohort_error *error = cohort_group_reshape(group, data, label);

  cohort_descs_free(data);
  cohort_descs_free(label);
  return error;
}

static int64_t batch_size_of(const cohort_group *group) {
  int64_t batch_size = -1;

  ok(cohort_group_batch_size(group, &batch_size));
  return batch_size;
}

/* DSC-02: the batch axis is where the first capital N stands. */
static void the_batch_axis_is_where_n_stands(void **state) {
  (void)state;
  batch_axis_is(NULL, 0);
  batch_axis_is("NCHW", 0);
  batch_axis_is("TN", 1);
  batch_axis_is("NTN", 0);
  batch_axis_is("TC", -1);
  batch_axis_is("", -1);
  batch_axis_is("nc", -1);
}

/* DSC-01: without dtype and layout a descriptor is float32 and NCHW. */
static void a_descriptor_is_float32_and_nchw_unless_told(void **state) {
  cohort_symbol *symbol = node("relu", "r", NO_ATTRS, INPUTS(variable("data")));
  const char *layout = NULL;
  cohort_descs *data = NULL, *bound = NULL;
  cohort_group *group;
  cohort_ndarray *array;
  int32_t axis = -7;

  (void)state;
  ok(cohort_descs_create(&data));
  ok(cohort_descs_add(data, "data", SHAPE(4), COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_get(data, 0, NULL, NULL, 0, NULL, NULL, &layout));
  assert_string_equal(layout, "NCHW");
  group = bind_for_training(symbol, 2, data, NULL, NO_NAMES, NULL);
  array = device_array(group, COHORT_GROUP_DATA, 0, 0);
  assert_int_equal(dtype_of(array), COHORT_DTYPE_FLOAT32);
  cohort_ndarray_free(array);
  ok(cohort_group_axis(group, COHORT_GROUP_DATA, 0, &axis));
  assert_int_equal(axis, 0);
  ok(cohort_group_descs(group, COHORT_GROUP_DATA, &bound));
  cohort_descs_free(bound);
  cohort_group_free(group);
}

/* DSC-03: the batch axis is one of the array's. */
static void a_batch_axis_beyond_the_shape_is_refused(void **state) {
  (void)state;
  refused(desc("data", SHAPE(4, 2), "CDN"), desc("label", SHAPE(4, 1), NULL), COHORT_ERROR_SHAPE, "data");
  refused(desc("data", SHAPE(4, 2), NULL), desc("label", NULL, 0, NULL), COHORT_ERROR_SHAPE, "label");
}

/* DSC-04: all descriptors with a batch axis have the same batch size. */
static void batch_sizes_must_agree(void **state) {
  (void)state;
  refused(desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(6, 1), NULL), COHORT_ERROR_SHAPE, "label");
}

/* DSC-05: the axes of descriptors, checked against the group's batch size. */
static void axes_are_decided_against_the_batch_size(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_descs *descs = desc("a", SHAPE(3, 4), "TN"), *none = NULL;
  int32_t axes[3] = {-7, -7, -7};

  (void)state;
  add_desc(descs, "b", SHAPE(4), NULL);
  add_desc(descs, "c", SHAPE(9, 9), "CD");
  ok(cohort_group_decide_slices(group, descs, axes));
  assert_int_equal(axes[0], 1);
  assert_int_equal(axes[1], 0);
  assert_int_equal(axes[2], -1);
  add_desc(descs, "d", SHAPE(5, 1), NULL);
  fails(cohort_group_decide_slices(group, descs, axes), COHORT_ERROR_SHAPE, "d");
  cohort_descs_free(descs);
  ok(cohort_descs_create(&none));
  fails(cohort_group_decide_slices(group, none, axes), COHORT_ERROR_INVALID_ARGUMENT, "");
  cohort_descs_free(none);
  cohort_group_free(group);
}

/* DSC-06: the descriptors of one device's slice. */
static void descriptors_are_sliced_for_a_device(void **state) {
  cohort_group *group = bind_regression(2, 5, NULL);
  cohort_descs *descs = desc("a", SHAPE(7, 5), "TN"), *sliced = NULL;
  int64_t shape[COHORT_MAX_AXES];
  const char *name = NULL, *layout = NULL;
  int32_t num_axes = 0;

  (void)state;
  add_desc(descs, "c", SHAPE(5, 9), "CD");
  ok(cohort_group_sliced_shape(group, descs, 1, NULL, &sliced));
  ok(cohort_descs_get(sliced, 0, &name, shape, COHORT_MAX_AXES, &num_axes, NULL, &layout));
  assert_string_equal(name, "a");
  assert_string_equal(layout, "TN");
  assert_int_equal(num_axes, 2);
  assert_int_equal(shape[0], 7);
  assert_int_equal(shape[1], 2);
  ok(cohort_descs_get(sliced, 1, NULL, shape, COHORT_MAX_AXES, &num_axes, NULL, NULL));
  assert_int_equal(shape[0], 5);
  assert_int_equal(shape[1], 9);
  cohort_descs_free(sliced);
  fails(cohort_group_sliced_shape(group, descs, 2, NULL, &sliced), COHORT_ERROR_INVALID_ARGUMENT, "2");
  cohort_descs_free(descs);
  cohort_group_free(group);
}

/* DSC-07: arrays of a batch come in the order of the descriptors, not of the arguments. */
static void a_batch_goes_by_the_order_of_the_descriptors(void **state) {
  cohort_symbol *symbol = node("elemwise_sub", "diff", NO_ATTRS, INPUTS(variable("a"), variable("b")));
  cohort_descs *data = desc("b", SHAPE(2, 1), NULL);
  cohort_ndarray *batch[2];
  cohort_group *group;

  (void)state;
  add_desc(data, "a", SHAPE(2, 1), NULL);
  group = bind_for_training(symbol, 2, data, NULL, NO_NAMES, NULL);
  batch[0] = floats(SHAPE(2, 1), FLOATS(1, 2));
  batch[1] = floats(SHAPE(2, 1), FLOATS(10, 20));
  ok(cohort_group_forward(group, batch, 2, NULL, 0, 0));
  cohort_ndarray_free(batch[0]);
  cohort_ndarray_free(batch[1]);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 9, 18);
  cohort_group_free(group);
}

/* DSC-08: each descriptor names an argument, and each name occurs once. */
static void names_of_descriptors_are_arguments(void **state) {
  cohort_descs *twice = desc("data", SHAPE(4, 2), NULL);

  (void)state;
  add_desc(twice, "data", SHAPE(4, 2), NULL);
  refused(twice, desc("label", SHAPE(4, 1), NULL), COHORT_ERROR_NAME, "data");
  refused(desc("picture", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL), COHORT_ERROR_NAME, "picture");
  refused(desc("data", SHAPE(4, 2), NULL), desc("labels", SHAPE(4, 1), NULL), COHORT_ERROR_NAME, "labels");
  refused(desc("data", SHAPE(4, 2), NULL), desc("data", SHAPE(4, 2), NULL), COHORT_ERROR_NAME, "data");
}

/* DSC-09: data descriptors are required; an empty list of labels means no labels. */
static void data_is_needed_and_labels_are_not(void **state) {
  cohort_descs *empty = NULL;
  cohort_group *group = NULL;

  (void)state;
  ok(cohort_descs_create(&empty));
  refused(empty, desc("label", SHAPE(4, 1), NULL), COHORT_ERROR_INVALID_ARGUMENT, "data");
  ok(cohort_descs_create(&empty));
  ok(try_bind_two(&group, desc("data", SHAPE(4, 2), NULL), empty));
  assert_int_equal(num_arrays(group, COHORT_GROUP_LABELS), 0);
  cohort_group_free(group);
}

/* DSC-10: where nothing has a batch axis every device gets everything, and device 0's output is the merged one. */
static void a_group_may_have_no_batch_axis_at_all(void **state) {
  cohort_symbol *symbol = node("relu", "r", NO_ATTRS, INPUTS(variable("data")));
  cohort_group *group = bind_for_training(symbol, 2, desc("data", SHAPE(3), "C"), NULL, NO_NAMES, NULL);
  cohort_ndarray *output;
  int64_t begin, end;

  (void)state;
  assert_int_equal(batch_size_of(group), 0);
  fails(cohort_group_slice(group, 0, &begin, &end), COHORT_ERROR_STATE, "batch");
  forward(group, counted(SHAPE(3), 1), NULL, 0);
  output = merged(group, COHORT_GROUP_OUTPUTS, 0);
  has_shape(output, 3);
  holds_free(output, 0, 1, 2);
  holds_free(device_array(group, COHORT_GROUP_OUTPUTS, 0, 1), 0, 1, 2);
  cohort_group_free(group);
}

/* CTX-04: a group needs a context; the same one twice gives two executors. */
static void one_context_may_come_twice(void **state) {
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 0}};
  cohort_symbol *symbol = regression("1");
  cohort_descs *data = desc("data", SHAPE(4, 2), NULL);
  const char *const params[] = {"fc_weight"};
  cohort_group *group = NULL;

  (void)state;
  fails(cohort_group_create(symbol, contexts, 0, data, NULL, params, 1, 1, NULL, &group), COHORT_ERROR_INVALID_ARGUMENT,
        "context");
  ok(cohort_group_create(symbol, contexts, 2, data, NULL, params, 1, 1, NULL, &group));
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  fill(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 1);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 0, 9, 13);
  cohort_group_free(group);
}

/* GRP-15, GRP-16: arrays start at zero; shapes that cannot be inferred or that contradict each other are refused. */
static void shapes_that_do_not_follow_are_refused(void **state) {
  cohort_symbol *symbol = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("other")));
  cohort_descs *data = desc("data", SHAPE(4, 2), NULL);
  cohort_group *group = NULL;

  (void)state;
  add_desc(data, "other", SHAPE(4, 3), NULL);
  fails(try_bind(&group, symbol, 2, data, NULL, NO_NAMES, NULL), COHORT_ERROR_SHAPE, "sum");
  fails(try_bind(&group, regression("1"), 2, desc("label", SHAPE(4, 1), NULL), NULL, NAMES("fc_weight"), NULL),
        COHORT_ERROR_SHAPE, "data");
  assert_null(group);
}

/* DIF-17, BND-02: binding again has to be requested explicitly, and then starts from zeros. */
static void binding_again_needs_to_be_asked_for(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_descs *data = desc("data", SHAPE(6, 2), NULL);

  (void)state;
  fails(cohort_group_bind(group, data, NULL, NULL, 0), COHORT_ERROR_STATE, "bound");
  assert_int_equal(batch_size_of(group), 4);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 1, 10);
  ok(cohort_group_bind(group, data, NULL, NULL, 1));
  cohort_descs_free(data);
  assert_int_equal(batch_size_of(group), 6);
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 0, 0);
  cohort_group_free(group);
}

/* BND-04, BND-06: a reshape keeps memory and values of parameters and their gradients. */
static void parameters_stay_over_a_reshape(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *weight = device_array(group, COHORT_GROUP_PARAMS, 0, 1);
  cohort_ndarray *grad = device_array(group, COHORT_GROUP_GRADS, 0, 1);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  ok(cohort_group_backward(group, NULL, 0));
  ok(try_reshape(group, desc("data", SHAPE(2, 2), NULL), desc("label", SHAPE(2, 1), NULL)));
  holds(grad, 672, 802);
  forward(group, counted(SHAPE(2, 2), 1), counted(SHAPE(2, 1), 0), 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32);
  ok(cohort_group_backward(group, NULL, 0));
  holds_free(grad, 64, 96);
  fill(weight, 1);
  ok(try_reshape(group, desc("data", SHAPE(6, 2), NULL), desc("label", SHAPE(6, 1), NULL)));
  forward(group, counted(SHAPE(6, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 13, 17, 21);
  cohort_group_free(group);
}

/* BND-03: a reshape to the same shapes does nothing; BWD-07: after one that changes something backward needs a
 * forward. */
static void a_reshape_to_the_same_does_nothing(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  ok(try_reshape(group, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL)));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  ok(cohort_group_backward(group, NULL, 0));
  ok(try_reshape(group, desc("data", SHAPE(6, 2), NULL), desc("label", SHAPE(6, 1), NULL)));
  fails(cohort_group_backward(group, NULL, 0), COHORT_ERROR_STATE, "forward");
  cohort_group_free(group);
}

/* BND-10: a reshape may drop the labels. */
static void labels_may_be_dropped_in_a_reshape(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);

  (void)state;
  ok(try_reshape(group, desc("data", SHAPE(6, 2), NULL), NULL));
  assert_int_equal(num_arrays(group, COHORT_GROUP_LABELS), 0);
  forward(group, counted(SHAPE(6, 2), 1), NULL, 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76, 98, 120);
  cohort_group_free(group);
}

/* BND-07, BND-08, BND-09: a reshape that is refused leaves everything as it was. */
static void a_reshape_that_fails_changes_nothing(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_descs *other = NULL;
  int64_t begin = -1, end = -1;

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  fails(try_reshape(group, desc("data", SHAPE(1, 2), NULL), desc("label", SHAPE(1, 1), NULL)),
        COHORT_ERROR_INVALID_ARGUMENT, "1");
  fails(try_reshape(group, desc("data", SHAPE(6, 3), NULL), desc("label", SHAPE(6, 1), NULL)), COHORT_ERROR_SHAPE,
        "fc_weight");
  fails(try_reshape(group, desc("data", SHAPE(6, 2), NULL), desc("label", SHAPE(8, 1), NULL)), COHORT_ERROR_SHAPE,
        "label");
  fails(try_reshape(group, desc("datum", SHAPE(6, 2), NULL), desc("label", SHAPE(6, 1), NULL)), COHORT_ERROR_NAME,
        "datum");
  ok(cohort_descs_create(&other));
  ok(cohort_descs_add(other, "data", SHAPE(6, 2), COHORT_DTYPE_FLOAT64, NULL));
  fails(try_reshape(group, other, desc("label", SHAPE(6, 1), NULL)), COHORT_ERROR_DTYPE, "data");
  assert_int_equal(batch_size_of(group), 4);
  ok(cohort_group_slice(group, 1, &begin, &end));
  assert_int_equal(begin, 2);
  assert_int_equal(end, 4);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  ok(cohort_group_backward(group, NULL, 0));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 64, 106);
  forward(group, counted(SHAPE(4, 2), 2), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 20, 64, 108, 152);
  cohort_group_free(group);
}

/* SHR-01, SHR-08: groups that share memory share parameters and gradients, whichever group is freed first. */
static void groups_that_share_memory_share_parameters(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *large = bind_regression(2, 6, NULL), *small;

  (void)state;
  options.shared_group = large;
  small = bind_for_training(regression("1"), 2, desc("data", SHAPE(2, 2), NULL), desc("label", SHAPE(2, 1), NULL),
                            NAMES("fc_weight"), &options);
  forward(small, counted(SHAPE(2, 2), 1), counted(SHAPE(2, 1), 0), 1);
  holds_free(merged(small, COHORT_GROUP_OUTPUTS, 0), 10, 32);
  ok(cohort_group_backward(small, NULL, 0));
  holds_free(device_array(large, COHORT_GROUP_GRADS, 0, 1), 64, 96);
  fill(device_array(large, COHORT_GROUP_PARAMS, 0, 1), 1);
  cohort_group_free(large);
  forward(small, counted(SHAPE(2, 2), 1), NULL, 0);
  holds_free(merged(small, COHORT_GROUP_OUTPUTS, 0), 10, 5);
  cohort_group_free(small);
}

/* SHR-02, SHR-05: refused are a parameter of another shape, one that the shared group lacks, and other contexts. */
static void groups_that_cannot_share_are_refused(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = bind_regression(2, 4, NULL), *other = NULL;
  cohort_symbol *stranger =
      node("FullyConnected", "gc", ATTRS("num_hidden", "1", "no_bias", "True"), INPUTS(variable("data")));

  (void)state;
  options.shared_group = group;
  fails(try_bind(&other, linear("3"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options),
        COHORT_ERROR_SHAPE, "fc_weight");
  fails(try_bind(&other, stranger, 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("gc_weight"), &options),
        COHORT_ERROR_NAME, "gc_weight");
  fails(try_bind(&other, linear("1"), 3, desc("data", SHAPE(6, 2), NULL), NULL, NAMES("fc_weight"), &options),
        COHORT_ERROR_INVALID_ARGUMENT, "context");
  assert_null(other);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_group_free(group);
}

/* ERR-01: NULL, and handles of another kind, are refused without harm. */
static void wrong_handles_are_refused(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL), *other = NULL;
  cohort_ndarray *array = counted(SHAPE(4, 2), 1);
  cohort_symbol *symbol = regression("1");
  cohort_descs *data = desc("data", SHAPE(4, 2), NULL);
  const cohort_context context = {COHORT_DEVICE_CPU, 0};
  int64_t batch_size = -7;

  (void)state;
  fails(cohort_group_batch_size(NULL, &batch_size), COHORT_ERROR_INVALID_ARGUMENT, "group");
  fails(cohort_group_batch_size((cohort_group *)array, &batch_size), COHORT_ERROR_INVALID_ARGUMENT, "group");
  fails(cohort_group_batch_size(group, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_batch_size");
  fails(cohort_group_create(NULL, &context, 1, data, NULL, NULL, 0, 1, NULL, &other), COHORT_ERROR_INVALID_ARGUMENT,
        "symbol");
  fails(cohort_group_create((cohort_symbol *)group, &context, 1, data, NULL, NULL, 0, 1, NULL, &other),
        COHORT_ERROR_INVALID_ARGUMENT, "symbol");
  fails(cohort_group_create(symbol, NULL, 1, data, NULL, NULL, 0, 1, NULL, &other), COHORT_ERROR_INVALID_ARGUMENT,
        "contexts");
  fails(cohort_group_create(symbol, &context, 1, NULL, NULL, NULL, 0, 1, NULL, &other), COHORT_ERROR_INVALID_ARGUMENT,
        "data");
  fails(cohort_group_create(symbol, &context, 1, data, NULL, NULL, 1, 1, NULL, &other), COHORT_ERROR_INVALID_ARGUMENT,
        "param_names");
  fails(cohort_group_create(symbol, &context, 1, data, NULL, NULL, 0, 1, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "out_group");
  fails(cohort_group_forward(group, NULL, 1, NULL, 0, 0), COHORT_ERROR_INVALID_ARGUMENT, "data");
  fails(cohort_group_forward(group, &array, 1, NULL, 0, 2), COHORT_ERROR_INVALID_ARGUMENT, "is_train");
  assert_int_equal(batch_size, -7);
  assert_null(other);
  ok(cohort_group_forward(group, &array, 1, NULL, 0, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_ndarray_free(array);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_group_free(group);
  cohort_group_free(NULL);
}

/* Errors of a device's part tell what the caller gave, too. */
static void a_shape_that_does_not_fit_is_told_as_it_was_given(void **state) {
  cohort_symbol *symbols[3];
  cohort_group *group = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < 3; ++i)
    symbols[i] = node("Convolution", "conv", ATTRS("kernel", "(3, 3)", "num_filter", "4"), INPUTS(variable("data")));
  fails(try_bind(&group, symbols[0], 3, desc("data", SHAPE(13, 3, 8), NULL), NULL, NAMES("conv_weight"), NULL),
        COHORT_ERROR_SHAPE, "data: expected 4 axes, found (4, 3, 8)");
  fails(try_bind(&group, symbols[1], 3, desc("data", SHAPE(13, 3, 8), NULL), NULL, NAMES("conv_weight"), NULL),
        COHORT_ERROR_SHAPE, "device 0 of 3 has samples 0 to 3 of 'data' (13, 3, 8)");
  fails(try_bind(&group, symbols[2], 1, desc("data", SHAPE(0, 3, 8, 8), NULL), NULL, NAMES("conv_weight"), NULL),
        COHORT_ERROR_INVALID_ARGUMENT,
        "'data': expected at least one sample, found an empty batch of shape (0, 3, 8, 8)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_shape_that_does_not_fit_is_told_as_it_was_given),
      TEST(the_batch_axis_is_where_n_stands),
      TEST(a_descriptor_is_float32_and_nchw_unless_told),
      TEST(a_batch_axis_beyond_the_shape_is_refused),
      TEST(batch_sizes_must_agree),
      TEST(axes_are_decided_against_the_batch_size),
      TEST(descriptors_are_sliced_for_a_device),
      TEST(a_batch_goes_by_the_order_of_the_descriptors),
      TEST(names_of_descriptors_are_arguments),
      TEST(data_is_needed_and_labels_are_not),
      TEST(a_group_may_have_no_batch_axis_at_all),
      TEST(one_context_may_come_twice),
      TEST(shapes_that_do_not_follow_are_refused),
      TEST(binding_again_needs_to_be_asked_for),
      TEST(parameters_stay_over_a_reshape),
      TEST(a_reshape_to_the_same_does_nothing),
      TEST(labels_may_be_dropped_in_a_reshape),
      TEST(a_reshape_that_fails_changes_nothing),
      TEST(groups_that_share_memory_share_parameters),
      TEST(groups_that_cannot_share_are_refused),
      TEST(wrong_handles_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
