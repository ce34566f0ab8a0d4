/* SPDX-License-Identifier: Apache-2.0 */
/* How the outputs of the devices are merged: OUT-01 to OUT-06. */
#include "support/group_tests.h"

/* Checks that an array, which is freed, is on this CPU. */
static void is_on_cpu(cohort_ndarray *array, int32_t device_id) {
  cohort_context context = {-1, -1};

  ok(cohort_ndarray_context(array, &context));
  assert_int_equal(context.device_type, COHORT_DEVICE_CPU);
  assert_int_equal(context.device_id, device_id);
  cohort_ndarray_free(array);
}

/* OUT-01: each device's output is on its own context, the merged one on device 0's. */
static void outputs_are_where_their_devices_are(void **state) {
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 3}, {COHORT_DEVICE_CPU, 1}};
  const char *const params[] = {"fc_weight"};
  cohort_symbol *symbol = linear("1");
  cohort_descs *data = desc("data", SHAPE(3, 2), NULL);
  cohort_group *group = NULL;

  (void)state;
  ok(cohort_group_create(symbol, contexts, 2, data, NULL, params, 1, 0, NULL, &group));
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  forward(group, counted(SHAPE(3, 2), 1), NULL, 0);
  is_on_cpu(device_array(group, COHORT_GROUP_OUTPUTS, 0, 0), 3);
  is_on_cpu(device_array(group, COHORT_GROUP_OUTPUTS, 0, 1), 1);
  is_on_cpu(merged(group, COHORT_GROUP_OUTPUTS, 0), 3);
  cohort_group_free(group);
}

/* OUT-02, OUT-03: any head without __layout__ is joined along axis 0: layouts are read, not inferred. */
static void heads_without_layout_are_joined_along_axis_0(void **state) {
  const struct {
    const char *axis;
    const char *keepdims;
  } sums[] = {{"0", "False"}, {"(0, 1)", "False"}};
  cohort_ndarray *output;
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(sums); ++i) {
    cohort_symbol *symbol =
        node("sum", "s", ATTRS("axis", sums[i].axis, "keepdims", sums[i].keepdims), INPUTS(variable("data")));
    cohort_group *group = bind_for_training(symbol, 2, desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, NULL);
    int32_t axis = -7;

    forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
    ok(cohort_group_axis(group, COHORT_GROUP_OUTPUTS, 0, &axis));
    assert_int_equal(axis, 0);
    output = merged(group, COHORT_GROUP_OUTPUTS, 0);
    if (i == 0) {
      has_shape(output, 4);
      holds_free(output, 2, 4, 10, 12);
    } else {
      has_shape(output, 2);
      holds_free(output, 6, 22);
    }
    cohort_group_free(group);
  }
}

/* OUT-04: on one device, and for a head without batch axis, the merged array is device 0's own. */
static void a_merged_output_of_one_part_is_that_part(void **state) {
  size_t devices;

  (void)state;
  for (devices = 1; devices <= 2; ++devices) {
    const char *const layout = devices == 1 ? "NC" : "C";
    cohort_symbol *symbol = node("relu", "r", ATTRS("__layout__", layout), INPUTS(variable("data")));
    cohort_group *group =
        bind_for_training(symbol, devices, desc("data", SHAPE((int64_t)devices, 2), NULL), NULL, NO_NAMES, NULL);
    cohort_ndarray *output = merged(group, COHORT_GROUP_OUTPUTS, 0);

    has_shape(output, 1, 2);
    forward(group, counted(SHAPE((int64_t)devices, 2), 1), NULL, 0);
    holds(output, 0, 1);
    forward(group, counted(SHAPE((int64_t)devices, 2), 3), NULL, 0);
    holds_free(output, 0, 3);
    cohort_group_free(group);
  }
}

/* OUT-05: slices of three rows and of two cannot be joined along another axis. */
static void parts_that_do_not_fit_are_not_joined(void **state) {
  cohort_symbol *symbol = node("relu", "r", ATTRS("__layout__", "CN"), INPUTS(variable("data")));
  cohort_group *group = bind_for_training(symbol, 2, desc("data", SHAPE(5, 2), NULL), NULL, NO_NAMES, NULL);
  cohort_ndarray *output = NULL;

  (void)state;
  forward(group, counted(SHAPE(5, 2), 1), NULL, 0);
  fails(cohort_group_merged(group, COHORT_GROUP_OUTPUTS, 0, &output), COHORT_ERROR_SHAPE, "(3, 2) and (2, 2)");
  assert_null(output);
  holds_free(device_array(group, COHORT_GROUP_OUTPUTS, 0, 1), 6, 7, 8, 9);
  cohort_group_free(group);
}

/* OUT-06: an output is joined along its own axis, not along that of another head. */
static void each_output_has_its_own_axis(void **state) {
  cohort_symbol *data = variable("data"), *same = NULL, *heads[2], *both = NULL;
  cohort_ndarray *output;
  cohort_group *group;

  (void)state;
  ok(cohort_symbol_output(data, 0, &same));
  heads[0] = node("relu", "rows", ATTRS("__layout__", "NC"), INPUTS(data));
  heads[1] = node("transpose", "columns", ATTRS("__layout__", "CN"), INPUTS(same));
  ok(cohort_symbol_group(heads, 2, &both));
  cohort_symbol_free(heads[0]);
  cohort_symbol_free(heads[1]);
  group = bind_for_training(both, 2, desc("data", SHAPE(3, 2), NULL), NULL, NO_NAMES, NULL);
  forward(group, counted(SHAPE(3, 2), 1), NULL, 0);
  output = merged(group, COHORT_GROUP_OUTPUTS, 1);
  has_shape(output, 2, 3);
  holds_free(output, 0, 2, 4, 1, 3, 5);
  output = merged(group, COHORT_GROUP_OUTPUTS, 0);
  has_shape(output, 3, 2);
  holds_free(output, 0, 1, 2, 3, 4, 5);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(outputs_are_where_their_devices_are),
      TEST(heads_without_layout_are_joined_along_axis_0),
      TEST(a_merged_output_of_one_part_is_that_part),
      TEST(parts_that_do_not_fit_are_not_joined),
      TEST(each_output_has_its_own_axis),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
