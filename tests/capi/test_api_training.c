/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers, metrics and initializers over the C ABI, and a small training run from start to end. */
#include <math.h>

#include "support/boundary.h"

static const int64_t two = 2, three = 3;

static cohort_optimizer *optimizer_of(const char *name, const char *const *keys, const char *const *values,
                                      size_t num) {
  cohort_optimizer *optimizer = NULL;

  ok(cohort_optimizer_create(name, keys, values, num, &optimizer));
  return optimizer;
}

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

/* Settings read back as they were given, can be changed, and are refused where they make no sense. */
static void settings_are_read_and_changed(void **state) {
  static const char *const keys[] = {"learning_rate", "momentum", "wd"}, *const values[] = {"0.25", "0.5", "0.125"};
  static const char *const rate = "learning_rate", *const words = "fast";
  cohort_optimizer *optimizer = optimizer_of("SGD", keys, values, 3), *bad = NULL;
  double value = 0;

  (void)state;
  ok(cohort_optimizer_get(optimizer, "learning_rate", &value));
  assert_true(value == 0.25);
  ok(cohort_optimizer_get(optimizer, "momentum", &value));
  assert_true(value == 0.5);
  ok(cohort_optimizer_get(optimizer, "rescale_grad", &value));
  assert_true(value == 1);
  ok(cohort_optimizer_get(optimizer, "clip_gradient", &value));
  assert_true(value == -1);
  ok(cohort_optimizer_get(optimizer, "num_update", &value));
  assert_true(value == 0);
  ok(cohort_optimizer_set(optimizer, "learning_rate", 2));
  ok(cohort_optimizer_get(optimizer, "learning_rate", &value));
  assert_true(value == 2);
  fails(cohort_optimizer_set(optimizer, "learning_rate", (double)NAN), COHORT_ERROR_INVALID_ARGUMENT, "learning_rate");
  fails(cohort_optimizer_create("sgd", &rate, &words, 1, &bad), COHORT_ERROR_INVALID_ARGUMENT, "fast");
  assert_null(bad);
  cohort_optimizer_free(optimizer);
}

/* Multipliers: chosen by the end of the name, then from the symbol, then those that were set. */
static void multipliers_have_an_order(void **state) {
  static const char *const keys[] = {"__lr_mult__", "__wd_mult__"}, *const values[] = {"3", "4"};
  cohort_optimizer *optimizer = optimizer_of("sgd", NULL, NULL, 0);
  cohort_symbol *symbol = NULL;
  double lr_mult = 0, wd_mult = 0;

  (void)state;
  ok(cohort_optimizer_mult(optimizer, "fc_weight", &lr_mult, &wd_mult));
  assert_true(lr_mult == 1 && wd_mult == 1);
  ok(cohort_optimizer_mult(optimizer, "fc_bias", &lr_mult, &wd_mult));
  assert_true(lr_mult == 1 && wd_mult == 0);
  ok(cohort_symbol_variable("fc_bias", keys, values, 2, &symbol));
  ok(cohort_optimizer_use_symbol(optimizer, symbol));
  ok(cohort_optimizer_mult(optimizer, "fc_bias", &lr_mult, &wd_mult));
  assert_true(lr_mult == 3 && wd_mult == 4);
  ok(cohort_optimizer_set_mult(optimizer, "fc_bias", 5, -1));
  ok(cohort_optimizer_mult(optimizer, "fc_bias", &lr_mult, &wd_mult));
  assert_true(lr_mult == 5 && wd_mult == 4);
  ok(cohort_optimizer_mult(optimizer, "fc_bias", NULL, NULL));
  cohort_symbol_free(symbol);
  cohort_optimizer_free(optimizer);
}

/* A schedule sets the rate from the number of updates; while there is one, the rate cannot be set otherwise. */
static void schedules_decide_the_rate(void **state) {
  static const char *const keys[] = {"step", "factor"}, *const values[] = {"2", "0.5"};
  static const char *const rate = "learning_rate", *const one = "1";
  const float zeros[] = {0, 0};
  cohort_optimizer *optimizer = optimizer_of("sgd", &rate, &one, 1);
  cohort_ndarray *weight = floats(zeros, &two, 1), *grad = floats(zeros, &two, 1);
  double value = 0, before = 2;
  int i;

  (void)state;
  ok(cohort_optimizer_set_lr_schedule(optimizer, "factor", keys, values, 2));
  fails(cohort_optimizer_set(optimizer, "learning_rate", 1), COHORT_ERROR_STATE, "schedule");
  for (i = 0; i < 6; ++i) {
    ok(cohort_optimizer_get(optimizer, "learning_rate", &value));
    assert_true(value <= before);
    before = value;
    ok(cohort_optimizer_update(optimizer, "w", 0, weight, grad));
  }
  assert_true(value <= 0.25);
  ok(cohort_optimizer_get(optimizer, "num_update", &value));
  assert_true(value == 6);
  ok(cohort_optimizer_set_lr_schedule(optimizer, NULL, NULL, NULL, 0));
  ok(cohort_optimizer_set(optimizer, "learning_rate", 1));
  cohort_ndarray_free(weight);
  cohort_ndarray_free(grad);
  cohort_optimizer_free(optimizer);
}

static void settings_start_as_the_header_says(void **state) {
  static const struct {
    const char *kind, *key;
    double value;
  } settings[] = {
      {"sgd", "learning_rate", 0.01},
      {"sgd", "momentum", 0},
      {"sgd", "wd", 0},
      {"sgd", "rescale_grad", 1},
      {"sgd", "clip_gradient", -1},
      {"sgd", "begin_num_update", 0},
      {"sgd", "multi_precision", 0},
      {"sgd", "lazy_update", 1},
      {"nag", "learning_rate", 0.01},
      {"nag", "momentum", 0},
      {"adam", "learning_rate", 1e-3},
      {"adam", "beta1", 0.9},
      {"adam", "beta2", 0.999},
      {"adam", "epsilon", 1e-8},
      {"adam", "lazy_update", 1},
      {"adamw", "learning_rate", 1e-3},
      {"adamw", "beta1", 0.9},
      {"adamw", "beta2", 0.999},
      {"adamw", "epsilon", 1e-8},
      {"rmsprop", "learning_rate", 1e-3},
      {"rmsprop", "gamma1", 0.9},
      {"rmsprop", "gamma2", 0.9},
      {"rmsprop", "epsilon", 1e-8},
      {"rmsprop", "centered", 0},
      {"rmsprop", "clip_weights", -1},
      {"adagrad", "learning_rate", 0.01},
      {"adagrad", "epsilon", 1e-7},
      {"adagrad", "eps", 1e-7},
      {"signum", "learning_rate", 0.01},
      {"signum", "momentum", 0.9},
      {"signum", "wd_lh", 0},
  };
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(settings); ++i) {
    cohort_optimizer *optimizer = optimizer_of(settings[i].kind, NULL, NULL, 0);
    double value = 77;

    ok(cohort_optimizer_get(optimizer, settings[i].key, &value));
    if (value != settings[i].value) fail_msg("%s, %s: %g", settings[i].kind, settings[i].key, value);
    cohort_optimizer_free(optimizer);
  }
}

/* MXNet's AdaGrad calls its epsilon "eps"; either spelling can be given, read and set, but only one may be given. */
static void epsilon_has_two_spellings(void **state) {
  static const char *const keys[] = {"eps", "epsilon"}, *const values[] = {"0.5", "0.25"};
  cohort_optimizer *optimizer = optimizer_of("adagrad", keys, values, 1), *none = NULL;
  double value = 0;

  (void)state;
  ok(cohort_optimizer_get(optimizer, "epsilon", &value));
  assert_true(value == 0.5);
  ok(cohort_optimizer_set(optimizer, "eps", 2));
  ok(cohort_optimizer_get(optimizer, "epsilon", &value));
  assert_true(value == 2);
  cohort_optimizer_free(optimizer);
  fails(cohort_optimizer_create("adagrad", keys, values, 2, &none), COHORT_ERROR_INVALID_ARGUMENT, "found both");
  assert_null(none);
}

/* SGD with momentum against values computed by hand; after saving and loading states it continues exactly the same. */
static void states_go_on_where_they_were(void **state) {
  static const char *const keys[] = {"learning_rate", "momentum", "wd"}, *const values[] = {"0.5", "0.5", "0"};
  const float start[] = {1, 2}, gradient[] = {1, -1};
  cohort_optimizer *first = optimizer_of("sgd", keys, values, 3), *second = optimizer_of("sgd", keys, values, 3);
  cohort_optimizer *other = optimizer_of("adam", NULL, NULL, 0);
  cohort_ndarray *weight = floats(start, &two, 1), *grad = floats(gradient, &two, 1), *copy = NULL;
  unsigned char bytes[4096];
  size_t num = 0;
  double value = 0;

  (void)state;
  ok(cohort_optimizer_update(first, "w", 0, weight, grad)); /* m = -0.5, 0.5 */
  assert_floats(weight, (const float[]){0.5f, 2.5f}, 2);
  ok(cohort_optimizer_update(first, "w", 0, weight, grad)); /* m = -0.75, 0.75 */
  assert_floats(weight, (const float[]){-0.25f, 3.25f}, 2);
  ok(cohort_optimizer_save_states_memory(first, NULL, 0, &num));
  assert_true(num > 0 && num <= sizeof(bytes));
  ok(cohort_optimizer_save_states_memory(first, bytes, sizeof(bytes), &num));
  ok(cohort_optimizer_load_states_memory(second, bytes, num));
  ok(cohort_optimizer_get(second, "num_update", &value));
  assert_true(value == 2);
  ok(cohort_ndarray_copy(weight, NULL, &copy));
  ok(cohort_optimizer_update(first, "w", 0, weight, grad));
  ok(cohort_optimizer_update(second, "w", 0, copy, grad));
  assert_floats(weight, (const float[]){-1.125f, 4.125f}, 2);
  assert_floats(copy, (const float[]){-1.125f, 4.125f}, 2);

  fails(cohort_optimizer_load_states_memory(other, bytes, num), COHORT_ERROR_FORMAT, "");
  fails(cohort_optimizer_load_states_memory(second, bytes, num - 1), COHORT_ERROR_FORMAT, "");
  fails(cohort_optimizer_load_states_memory(second, NULL, 0), COHORT_ERROR_FORMAT, "");
  { /* as many updates as the counter can hold: there can be no other one */
    const int64_t most = INT64_MAX;
    unsigned char *const num_update = bytes + 8 + 4 + 4 + strlen("sgd/1/0"), *const num_counts = num_update + 8;

    memcpy(num_update, &most, sizeof most);
    memcpy(num_counts + 8 + 4 + 1 + 8, &most, sizeof most);
    fails(cohort_optimizer_load_states_memory(second, bytes, num), COHORT_ERROR_FORMAT, "9223372036854775807");
  }
  fails(cohort_optimizer_load_states(second, "no/such.states"), COHORT_ERROR_IO, "no/such.states");
  fails(cohort_optimizer_save_states(second, "no/such/folder/x.states"), COHORT_ERROR_IO, "no/such/folder/x.states");
  cohort_ndarray_free(weight);
  cohort_ndarray_free(grad);
  cohort_ndarray_free(copy);
  cohort_optimizer_free(first);
  cohort_optimizer_free(second);
  cohort_optimizer_free(other);
}

/* A gradient that does not fit its weight is refused, and the weight is unchanged. */
static void misfitting_gradients_are_refused(void **state) {
  const float start[] = {1, 2}, gradient[] = {1, -1, 1};
  const cohort_context cpu1 = {COHORT_DEVICE_CPU, 1};
  cohort_optimizer *optimizer = optimizer_of("adam", NULL, NULL, 0);
  cohort_ndarray *weight = floats(start, &two, 1), *longer = floats(gradient, &three, 1), *doubles = NULL, *far = NULL;

  (void)state;
  ok(cohort_ndarray_cast(weight, COHORT_DTYPE_FLOAT64, &doubles));
  ok(cohort_ndarray_copy(weight, &cpu1, &far));
  fails(cohort_optimizer_update(optimizer, "w", 0, weight, longer), COHORT_ERROR_SHAPE, "w");
  fails(cohort_optimizer_update(optimizer, "w", 0, weight, doubles), COHORT_ERROR_DTYPE, "w");
  fails(cohort_optimizer_update(optimizer, "w", 0, weight, far), COHORT_ERROR_DEVICE, "w");
  assert_floats(weight, start, 2);
  cohort_ndarray_free(weight);
  cohort_ndarray_free(longer);
  cohort_ndarray_free(doubles);
  cohort_ndarray_free(far);
  cohort_optimizer_free(optimizer);
}

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

static double value_of(const cohort_metric *metric, size_t index, int32_t global) {
  double value = -77;

  ok(cohort_metric_value(metric, index, global, NULL, &value));
  return value;
}

/* Values since the last reset, and since the last global one; NaN before anything was counted. */
static void metrics_count_locally_and_globally(void **state) {
  const float right[] = {0.9f, 0.1f, 0.2f, 0.8f}, zero_one[] = {0, 1}, zeros[] = {0, 0};
  const int64_t two_by_two[] = {2, 2};
  cohort_ndarray *preds = floats(right, two_by_two, 2), *good = floats(zero_one, &two, 1),
                 *half = floats(zeros, &two, 1);
  cohort_metric *metric = NULL;
  const char *name = NULL;
  double sum = 0, num = 0;

  (void)state;
  ok(cohort_metric_create("acc", NULL, NULL, 0, &metric));
  assert_true(isnan(value_of(metric, 0, 0)));
  ok(cohort_metric_update(metric, &good, 1, &preds, 1));
  assert_true(value_of(metric, 0, 0) == 1);
  ok(cohort_metric_reset_local(metric));
  ok(cohort_metric_update(metric, &half, 1, &preds, 1));
  assert_true(value_of(metric, 0, 0) == 0.5);
  assert_true(value_of(metric, 0, 1) == 0.75);
  ok(cohort_metric_counters(metric, 0, 1, &sum, &num));
  assert_true(sum == 3 && num == 4);
  ok(cohort_metric_value(metric, 0, 0, &name, NULL));
  assert_string_equal(name, "accuracy");
  ok(cohort_metric_reset(metric));
  assert_true(isnan(value_of(metric, 0, 1)));
  fails(cohort_metric_update(metric, &good, 1, NULL, 0), COHORT_ERROR_INVALID_ARGUMENT, "");
  assert_true(isnan(value_of(metric, 0, 0)));
  cohort_ndarray_free(preds);
  cohort_ndarray_free(good);
  cohort_ndarray_free(half);
  cohort_metric_free(metric);
}

static int32_t mean_difference(cohort_ndarray *const *labels, size_t num_labels, cohort_ndarray *const *preds,
                               size_t num_preds, double *out_sum, double *out_num, void *user_data) {
  float label[2], pred[2];

  if (*(const int *)user_data) return *(const int *)user_data;
  assert_int_equal(num_labels, 1);
  assert_int_equal(num_preds, 1);
  ok(cohort_ndarray_read(labels[0], label, sizeof(label)));
  ok(cohort_ndarray_read(preds[0], pred, sizeof(pred)));
  *out_sum = (double)(pred[0] - label[0] + pred[1] - label[1]);
  *out_num = 2;
  return 0;
}

/* A custom metric is called at each update; if it fails, the update fails and nothing is counted. */
static void callbacks_are_metrics(void **state) {
  const float ones[] = {1, 1}, values[] = {2, 5};
  cohort_ndarray *label = floats(ones, &two, 1), *pred = floats(values, &two, 1), *both[2];
  cohort_metric *metric = NULL, *composite = NULL, *child = NULL, *error_child = NULL;
  int fail_with = 0;
  size_t num = 0;
  const char *name = NULL;

  (void)state;
  ok(cohort_metric_create_custom("difference", mean_difference, &fail_with, 0, &metric));
  ok(cohort_metric_update(metric, &label, 1, &pred, 1));
  assert_true(value_of(metric, 0, 0) == 2.5);
  fail_with = 7;
  fails(cohort_metric_update(metric, &label, 1, &pred, 1), COHORT_ERROR_EXECUTION, "7");
  fail_with = 0;
  assert_true(value_of(metric, 0, 0) == 2.5);
  both[0] = both[1] = pred;
  fails(cohort_metric_update(metric, &label, 1, both, 2), COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_metric_create_custom("x", NULL, NULL, 0, &child), COHORT_ERROR_INVALID_ARGUMENT, "callback");

  ok(cohort_metric_create("composite", NULL, NULL, 0, &composite));
  ok(cohort_metric_create("mse", NULL, NULL, 0, &error_child));
  ok(cohort_metric_add(composite, metric));
  ok(cohort_metric_add(composite, error_child));
  cohort_metric_free(metric);
  ok(cohort_metric_reset(composite));
  ok(cohort_metric_update(composite, &label, 1, &pred, 1));
  ok(cohort_metric_num_values(composite, &num));
  assert_int_equal(num, 2);
  assert_true(value_of(composite, 0, 0) == 2.5);
  assert_true(value_of(composite, 1, 0) == 8.5);
  ok(cohort_metric_value(composite, 1, 0, &name, NULL));
  assert_string_equal(name, "mse");
  ok(cohort_metric_child(composite, 0, &child));
  assert_true(value_of(child, 0, 0) == 2.5);
  fails(cohort_metric_add(child, error_child), COHORT_ERROR_STATE, "difference");
  cohort_metric_free(child);
  cohort_metric_free(composite);
  cohort_metric_free(error_child);
  cohort_ndarray_free(label);
  cohort_ndarray_free(pred);
}

/* With names, a metric takes only the outputs and labels it was told to, in its own order. */
static void metrics_choose_by_name(void **state) {
  static const char *const label_name = "right", *const output_name = "good", *const nobody = "nobody";
  const float ones[] = {1, 1}, values[] = {2, 5};
  cohort_ndarray *label = floats(ones, &two, 1), *pred = floats(values, &two, 1);
  cohort_arrays *labels = NULL, *preds = NULL;
  cohort_metric *metric = NULL;

  (void)state;
  ok(cohort_arrays_create(&labels));
  ok(cohort_arrays_create(&preds));
  ok(cohort_arrays_add(labels, "wrong", pred));
  ok(cohort_arrays_add(labels, "right", label));
  ok(cohort_arrays_add(preds, "good", pred));
  ok(cohort_metric_create("mae", NULL, NULL, 0, &metric));
  fails(cohort_metric_update_named(metric, labels, preds), COHORT_ERROR_INVALID_ARGUMENT, "");
  ok(cohort_metric_set_names(metric, &label_name, 1, &output_name, 1));
  ok(cohort_metric_update_named(metric, labels, preds));
  assert_true(value_of(metric, 0, 0) == 2.5);
  ok(cohort_metric_set_names(metric, &label_name, 1, &nobody, 1));
  fails(cohort_metric_update_named(metric, labels, preds), COHORT_ERROR_NAME, "nobody");
  ok(cohort_arrays_add(preds, "nobody", NULL));
  fails(cohort_metric_update_named(metric, labels, preds), COHORT_ERROR_INVALID_ARGUMENT,
        "output 'nobody' has no array");
  ok(cohort_metric_set_names(metric, NULL, 0, NULL, 0));
  fails(cohort_metric_update_named(metric, labels, preds), COHORT_ERROR_INVALID_ARGUMENT,
        "output 'nobody' has no array");
  assert_true(value_of(metric, 0, 0) == 2.5);
  cohort_arrays_free(labels);
  cohort_arrays_free(preds);
  cohort_metric_free(metric);
  cohort_ndarray_free(label);
  cohort_ndarray_free(pred);
}

/* ---- initializers ------------------------------------------------------------------------------------------------ */

static void assert_value(const cohort_arrays *arrays, const char *name, float value) {
  cohort_ndarray *array = NULL;
  size_t index = 0;

  ok(cohort_arrays_find(arrays, name, &index));
  ok(cohort_arrays_get(arrays, index, &array));
  assert_floats(array, (const float[]){value, value}, 2);
  cohort_ndarray_free(array);
}

/* The end of a name chooses the rule, `__init__` comes first; a name that matches no rule is an error. */
static void names_decide_what_is_filled(void **state) {
  static const char *const names[] = {"fc_bias", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var", "odd"};
  static const float expected[] = {0, 1, 0, 0, 1, 5};
  static const char *const key = "__init__", *const five = "[\"constant\", {\"value\": 5}]";
  static const char *const value_key = "value", *const nine = "9";
  const float sevens[] = {7, 7};
  cohort_initializer *initializer = NULL;
  cohort_symbol *symbol = NULL;
  cohort_arrays *arrays = NULL;
  cohort_ndarray *weight = floats(sevens, &two, 1);
  size_t i;

  (void)state;
  ok(cohort_initializer_create("constant", &value_key, &nine, 1, 0, &initializer));
  ok(cohort_symbol_variable("odd", &key, &five, 1, &symbol));
  ok(cohort_arrays_create(&arrays));
  ok(cohort_arrays_add(arrays, "fc_weight", weight));
  for (i = 0; i < NUM_OF(names); ++i) {
    cohort_ndarray *array = floats(sevens, &two, 1);

    ok(cohort_arrays_add(arrays, names[i], array));
    cohort_ndarray_free(array);
  }
  ok(cohort_arrays_add(arrays, "missing_bias", NULL));
  fails(cohort_initializer_apply(initializer, NULL, arrays), COHORT_ERROR_NAME, "odd");
  assert_floats(weight, sevens, 2);
  ok(cohort_initializer_apply(initializer, symbol, arrays));
  assert_floats(weight, (const float[]){9, 9}, 2);
  for (i = 0; i < NUM_OF(names); ++i) assert_value(arrays, names[i], expected[i]);
  cohort_initializer_free(initializer);
  cohort_symbol_free(symbol);
  cohort_arrays_free(arrays);
  cohort_ndarray_free(weight);
}

/* All forms of `__init__` that MXNet accepts; Gluon exports a bare name. */
static void an_initializer_is_named_in_any_of_three_forms(void **state) {
  static const char *const forms[] = {"ones", "One", "[\"one\", {}]", "{\"initializer\": \"constant\", \"value\": 1}"};
  static const char *const bad[] = {"wishful", "{\"value\": 1}", "{\"initializer\"",
                                    "{\"initializer\": \"one\", \"x\": 1}", ""};
  static const char *const key = "__init__";
  cohort_initializer *initializer = NULL;
  size_t i;

  (void)state;
  ok(cohort_initializer_create("zero", NULL, NULL, 0, 0, &initializer));
  for (i = 0; i < NUM_OF(forms) + NUM_OF(bad); ++i) {
    const float sevens[] = {7, 7};
    const char *const form = i < NUM_OF(forms) ? forms[i] : bad[i - NUM_OF(forms)];
    cohort_ndarray *array = floats(sevens, &two, 1);
    cohort_symbol *symbol = NULL;
    cohort_arrays *arrays = NULL;
    cohort_error *error;

    ok(cohort_symbol_variable("odd", &key, &form, 1, &symbol));
    ok(cohort_arrays_create(&arrays));
    ok(cohort_arrays_add(arrays, "odd", array));
    error = cohort_initializer_apply(initializer, symbol, arrays);
    if (i < NUM_OF(forms)) {
      ok(error);
      assert_floats(array, (const float[]){1, 1}, 2);
    } else {
      assert_int_not_equal(cohort_error_code(error), COHORT_SUCCESS);
      assert_int_not_equal(cohort_error_code(error), COHORT_ERROR_INTERNAL);
      cohort_error_free(error);
      assert_floats(array, sevens, 2);
    }
    cohort_arrays_free(arrays);
    cohort_symbol_free(symbol);
    cohort_ndarray_free(array);
  }
  cohort_initializer_free(initializer);
}

/* Seed and name determine the numbers, and a rule that needs axes says so. */
static void seeds_and_names_choose_the_numbers(void **state) {
  enum { NUM = 12 };
  const int64_t shape[] = {3, 4};
  float values[3][NUM];
  cohort_initializer *first = NULL, *again = NULL, *xavier = NULL;
  cohort_ndarray *array = NULL, *flat = NULL;
  int i;

  (void)state;
  ok(cohort_initializer_create("uniform", NULL, NULL, 0, 3, &first));
  ok(cohort_initializer_create("uniform", NULL, NULL, 0, 3, &again));
  ok(cohort_initializer_create("xavier", NULL, NULL, 0, 3, &xavier));
  ok(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_zeros(&two, 1, COHORT_DTYPE_FLOAT32, NULL, &flat));
  ok(cohort_initializer_fill(first, "a", array));
  ok(cohort_ndarray_read(array, values[0], sizeof(values[0])));
  ok(cohort_initializer_fill(again, "a", array));
  ok(cohort_ndarray_read(array, values[1], sizeof(values[1])));
  ok(cohort_initializer_fill(again, "b", array));
  ok(cohort_ndarray_read(array, values[2], sizeof(values[2])));
  assert_memory_equal(values[0], values[1], sizeof(values[0]));
  assert_memory_not_equal(values[0], values[2], sizeof(values[0]));
  for (i = 0; i < NUM; ++i) assert_true(fabsf(values[0][i]) <= 0.07f);
  fails(cohort_initializer_fill(xavier, "a", flat), COHORT_ERROR_SHAPE, "(2,)");
  ok(cohort_initializer_fill(xavier, "a", array));
  cohort_initializer_free(first);
  cohort_initializer_free(again);
  cohort_initializer_free(xavier);
  cohort_ndarray_free(array);
  cohort_ndarray_free(flat);
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

enum { BATCH = 8 };

/* Class 1 where the first number is larger than the second. */
static void make_batch(cohort_ndarray **out_data, cohort_ndarray **out_label) {
  const int64_t shape[] = {BATCH, 3};
  float data[BATCH * 3], label[BATCH];
  int i;

  for (i = 0; i < BATCH; ++i) {
    data[3 * i] = (float)((i * 5) % 8) / 8;
    data[3 * i + 1] = (float)((i * 3) % 8) / 8;
    data[3 * i + 2] = 0.5f;
    label[i] = data[3 * i] > data[3 * i + 1];
  }
  *out_data = floats(data, shape, 2);
  *out_label = floats(label, shape, 1);
}

static void read_weight(const cohort_group *group, float *values) {
  cohort_arrays *args = NULL, *aux = NULL;
  cohort_ndarray *weight = NULL;
  size_t index = 0;

  ok(cohort_group_copy_params(group, &args, &aux));
  ok(cohort_arrays_find(args, "fc_weight", &index));
  ok(cohort_arrays_get(args, index, &weight));
  ok(cohort_ndarray_read(weight, values, 6 * sizeof(float)));
  cohort_ndarray_free(weight);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
}

/* Trains on that batch and returns the accuracy of the last pass and the weights. */
static double train(size_t num_contexts, float *weights) {
  static const char *const keys[] = {"learning_rate", "momentum", "rescale_grad"}, *const values[] = {"0.5", "0.9",
                                                                                                      "0.125"};
  cohort_group *group = small_group(num_contexts, BATCH);
  cohort_optimizer *optimizer = optimizer_of("sgd", keys, values, 3);
  cohort_initializer *initializer = NULL;
  cohort_metric *metric = NULL;
  cohort_arrays *params = NULL;
  cohort_ndarray *data = NULL, *label = NULL;
  double accuracy;
  int step;

  ok(cohort_initializer_create("uniform", NULL, NULL, 0, 1, &initializer));
  ok(cohort_metric_create("acc", NULL, NULL, 0, &metric));
  ok(cohort_group_arrays(group, COHORT_GROUP_PARAMS, 0, &params));
  ok(cohort_initializer_apply(initializer, NULL, params));
  ok(cohort_group_set_params(group, params, NULL, 0));
  make_batch(&data, &label);
  for (step = 0; step < 60; ++step) {
    ok(cohort_metric_reset(metric));
    ok(cohort_group_forward(group, &data, 1, &label, 1, 1));
    ok(cohort_group_backward(group, NULL, 0));
    ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
    ok(cohort_group_update_metric(group, metric, &label, 1));
  }
  accuracy = value_of(metric, 0, 0);
  read_weight(group, weights);
  cohort_initializer_free(initializer);
  cohort_optimizer_free(optimizer);
  cohort_metric_free(metric);
  cohort_arrays_free(params);
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_group_free(group);
  return accuracy;
}

/* A small network learns its batch, with the same bits each time, and almost the same on one device as on four. */
static void a_network_learns(void **state) {
  float once[6], twice[6], alone[6];
  int i;

  (void)state;
  assert_true(train(4, once) == 1);
  assert_true(train(4, twice) == 1);
  assert_memory_equal(once, twice, sizeof(once));
  assert_true(train(1, alone) == 1);
  for (i = 0; i < 6; ++i) assert_true(fabsf(alone[i] - once[i]) <= 1e-4f * (1 + fabsf(alone[i])));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(settings_are_read_and_changed),
      TEST(settings_start_as_the_header_says),
      TEST(multipliers_have_an_order),
      TEST(schedules_decide_the_rate),
      TEST(epsilon_has_two_spellings),
      TEST(states_go_on_where_they_were),
      TEST(misfitting_gradients_are_refused),
      TEST(metrics_count_locally_and_globally),
      TEST(callbacks_are_metrics),
      TEST(metrics_choose_by_name),
      TEST(names_decide_what_is_filled),
      TEST(an_initializer_is_named_in_any_of_three_forms),
      TEST(seeds_and_names_choose_the_numbers),
      TEST(a_network_learns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
