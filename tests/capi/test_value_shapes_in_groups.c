/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of networks in which a shape depends on values: each device finds its own. */
#include "support/group_tests.h"

/* Another handle on it. */
static cohort_symbol *also(const cohort_symbol *symbol) {
  cohort_symbol *same = NULL;

  ok(cohort_symbol_output(symbol, 0, &same));
  return same;
}

/* data w, of the rows that index takes, times w again: w is read before the mask and behind it. Frees data. */
static cohort_symbol *masked_product_of(cohort_symbol *data) {
  const char *const key = "__shape__", *const value = "(1, 2)";
  cohort_symbol *w = NULL, *same, *scaled, *taken;

  ok(cohort_symbol_variable("w", &key, &value, 1, &w));
  same = also(w);
  scaled = node("broadcast_mul", "scaled", NO_ATTRS, INPUTS(data, w));
  taken = node("_contrib_boolean_mask", "taken", NO_ATTRS, INPUTS(scaled, variable("index")));
  return node("broadcast_mul", "product", NO_ATTRS, INPUTS(taken, same));
}

static cohort_symbol *masked_product(void) { return masked_product_of(variable("data")); }

static cohort_descs *data_and_index(int64_t batch) {
  cohort_descs *descs = desc("data", SHAPE(batch, 2), NULL);

  add_desc(descs, "index", SHAPE(batch), NULL);
  return descs;
}

static cohort_group *bind_product(size_t num_contexts, int64_t batch) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;

  options.inputs_need_grad = 1;
  group = bind(masked_product(), num_contexts, data_and_index(batch), NULL, NAMES("w"), &options);
  set_param(group, "w", floats(SHAPE(1, 2), FLOATS(1, 2)));
  return group;
}

/* Rows (0, 1), (2, 3) and so on, and which of them are taken. */
static void forward_rows(cohort_group *group, const float *mask, size_t batch, int32_t is_train) {
  cohort_ndarray *data[2];

  data[0] = counted(SHAPE((int64_t)batch, 2), 1);
  data[1] = floats(SHAPE((int64_t)batch), mask, batch);
  ok(cohort_group_forward(group, data, 2, NULL, 0, is_train));
  cohort_ndarray_free(data[0]);
  cohort_ndarray_free(data[1]);
}

static void update(cohort_group *group) {
  const char *const key = "learning_rate", *const value = "0.01";
  cohort_optimizer *sgd = NULL;

  ok(cohort_optimizer_create("sgd", &key, &value, 1, &sgd));
  ok(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE));
  cohort_optimizer_free(sgd);
}

/* One device takes a row, one both of its rows, one none: outputs and gradients are those of one device. */
static void each_device_takes_its_own_rows(void **state) {
  size_t num;

  (void)state;
  for (num = 1; num <= 3; ++num) {
    cohort_group *group = bind_product(num, 6);
    cohort_ndarray *output;
    cohort_descs *descs = NULL;
    int64_t shape[COHORT_MAX_AXES];
    int32_t num_axes = 0;

    forward_rows(group, (const float[]){1, 0, 1, 1, 0, 0}, 6, 1);
    output = merged(group, COHORT_GROUP_OUTPUTS, 0);
    has_shape(output, 3, 2);
    holds_free(output, 0, 4, 4, 20, 6, 28);
    ok(cohort_group_output_shapes(group, &descs));
    ok(cohort_descs_get(descs, 0, NULL, shape, COHORT_MAX_AXES, &num_axes, NULL, NULL));
    assert_int_equal(num_axes, 2);
    assert_int_equal(shape[0], 3);
    cohort_descs_free(descs);
    backward(group, floats(SHAPE(3, 2), FLOATS(1, 1, 2, 2, 3, 3)));
    holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), 1, 4, 0, 0, 2, 8, 3, 12, 0, 0, 0, 0);
    update(group); /* from gradients (52, 128) */
    holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, num - 1), 0.48f, 0.72f);

    set_param(group, "w", floats(SHAPE(1, 2), FLOATS(1, 2)));
    forward_rows(group, (const float[]){0, 0, 0, 0, 1, 1}, 6, 0);
    output = merged(group, COHORT_GROUP_OUTPUTS, 0);
    has_shape(output, 2, 2);
    holds_free(output, 8, 36, 10, 44);
    fails(try_backward(group, floats(SHAPE(3, 2), FLOATS(1, 1, 1, 1, 1, 1))), COHORT_ERROR_SHAPE,
          "expected shape (2, 2), found (3, 2)");
    cohort_group_free(group);
  }
}

/* Other batches keep the parameters; a shape seen before is found again. */
static void a_group_of_parts_is_reshaped(void **state) {
  cohort_group *group = bind_product(2, 4);
  cohort_descs *four = data_and_index(4), *six = data_and_index(6);
  int round;

  (void)state;
  for (round = 0; round < 2; ++round) {
    ok(cohort_group_reshape(group, six, NULL));
    forward_rows(group, (const float[]){0, 1, 0, 0, 0, 1}, 6, 1);
    holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 2, 12, 10, 44);
    ok(cohort_group_reshape(group, four, NULL));
    forward_rows(group, (const float[]){0, 1, 0, 0}, 4, 1);
    holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 2, 12);
    backward(group, floats(SHAPE(1, 2), FLOATS(1, 1)));
    update(group);
    set_param(group, "w", floats(SHAPE(1, 2), FLOATS(1, 2)));
  }
  cohort_descs_free(four);
  cohort_descs_free(six);
  cohort_group_free(group);
}

/* Outputs of known shapes are merged, too, before the mask and behind it. */
static void what_has_a_shape_is_merged_as_ever(void **state) {
  cohort_symbol *data = variable("data"), *product = masked_product_of(also(data)), *heads[2], *both = NULL;
  cohort_group *group;

  (void)state;
  heads[0] = node("sum", "sums", ATTRS("axis", "0", "keepdims", "True"), INPUTS(product));
  heads[1] = node("square", "squares", NO_ATTRS, INPUTS(data));
  ok(cohort_symbol_group(heads, 2, &both));
  cohort_symbol_free(heads[0]);
  cohort_symbol_free(heads[1]);
  group = bind_for_inference(both, 2, data_and_index(4), NULL, NAMES("w"), NULL);
  set_param(group, "w", floats(SHAPE(1, 2), FLOATS(1, 2)));
  forward_rows(group, (const float[]){1, 1, 0, 1}, 4, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 2, 16, 6, 28);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 1), 0, 1, 4, 9, 16, 25, 36, 49);
  cohort_group_free(group);
}

/* Before a forward pass nobody knows the shape. */
static void without_a_forward_there_is_no_output(void **state) {
  cohort_group *group = bind_product(2, 4);
  cohort_descs *descs = NULL;

  (void)state;
  assert_null(merged(group, COHORT_GROUP_OUTPUTS, 0));
  assert_null(device_array(group, COHORT_GROUP_OUTPUTS, 0, 1));
  fails(cohort_group_output_shapes(group, &descs), COHORT_ERROR_STATE, "output 'product_output'");
  fails(try_backward(group, NULL), COHORT_ERROR_STATE, "no forward has run");
  cohort_group_free(group);
}

static void metrics_want_a_forward(void **state) {
  cohort_symbol *loss = node("LinearRegressionOutput", "loss", NO_ATTRS, INPUTS(masked_product(), variable("label")));
  cohort_group *group = bind(loss, 2, data_and_index(4), desc("label", SHAPE(4, 2), NULL), NAMES("w"), NULL);
  cohort_ndarray *label = counted(SHAPE(4, 2), 1);
  cohort_metric *metric = NULL;

  (void)state;
  ok(cohort_metric_create("mse", NULL, NULL, 0, &metric));
  fails(cohort_group_update_metric(group, metric, &label, 1), COHORT_ERROR_STATE, "output 'loss_output'");
  cohort_ndarray_free(label);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* Gradients that begin in several parts have no common factor, and parts no common step. */
static void what_parts_cannot_have_is_refused(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;
  cohort_symbol *norm;

  (void)state;
  options.loss_scale = 1024;
  fails(try_bind(&group, masked_product(), 2, data_and_index(4), NULL, NAMES("w"), &options), COHORT_ERROR_UNSUPPORTED,
        "node 'taken' (_contrib_boolean_mask): the shape of its output depends on values");
  norm = node("_contrib_SyncBatchNorm", "norm", ATTRS("key", "n"), INPUTS(masked_product()));
  fails(try_bind(&group, norm, 2, data_and_index(4), NULL, NAMES("w", "norm_gamma", "norm_beta"), NULL),
        COHORT_ERROR_UNSUPPORTED, "layers that exchange statistics");
  assert_null(group);
}

/* Work behind the values that has failed is a failed pass, once the group was told: no step follows from it. */
static void what_fails_behind_the_values_is_a_failed_pass(void **state) {
  cohort_optimizer *sgd = NULL;
  cohort_group *group;

  (void)state;
  setenv("COHORT_FAULT", "product", 1);
  group = bind_product(2, 4);
  unsetenv("COHORT_FAULT");
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &sgd));
  forward_rows(group, (const float[]){1, 0, 1, 1}, 4, 1);
  fails(cohort_group_wait(group), COHORT_ERROR_EXECUTION, "'product'");
  fails(try_backward(group, counted(SHAPE(3, 2), 1)), COHORT_ERROR_STATE, "the last one failed");
  fails(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE), COHORT_ERROR_STATE, "no backward has run");
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_fails_behind_the_values_is_a_failed_pass),
      TEST(each_device_takes_its_own_rows),
      TEST(a_group_of_parts_is_reshaped),
      TEST(what_has_a_shape_is_merged_as_ever),
      TEST(without_a_forward_there_is_no_output),
      TEST(metrics_want_a_forward),
      TEST(what_parts_cannot_have_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
