/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of networks in which a shape depends on values: each device determines its own. */
#include <math.h>

#include "support/group_tests.h"

/* A second handle on it. */
static cohort_symbol *also(const cohort_symbol *symbol) {
  cohort_symbol *same = NULL;

  ok(cohort_symbol_output(symbol, 0, &same));
  return same;
}

/* data w, the rows that index takes, times w again: w is read before the mask and behind it. Frees data. */
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
  group = bind_for_training(masked_product(), num_contexts, data_and_index(batch), NULL, NAMES("w"), &options);
  set_param(group, "w", floats(SHAPE(1, 2), FLOATS(1, 2)));
  return group;
}

/* Rows (0, 1), (2, 3) and so on, and the index of those that are taken. */
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

/* Other batches keep the parameters; a shape seen before uses the same executor. */
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
static void outputs_of_known_shapes_are_merged(void **state) {
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

/* Before a forward pass the shape is unknown. */
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
  cohort_group *group =
      bind_for_training(loss, 2, data_and_index(4), desc("label", SHAPE(4, 2), NULL), NAMES("w"), NULL);
  cohort_ndarray *label = counted(SHAPE(4, 2), 1);
  cohort_metric *metric = NULL;

  (void)state;
  ok(cohort_metric_create("mse", NULL, NULL, 0, &metric));
  fails(cohort_group_update_metric(group, metric, &label, 1), COHORT_ERROR_STATE, "output 'loss_output'");
  cohort_ndarray_free(label);
  cohort_metric_free(metric);
  cohort_group_free(group);
}

/* ---- loss scales --------------------------------------------------------------------------------------------------
 */

static cohort_symbol *two_heads(cohort_symbol *first, cohort_symbol *second) {
  cohort_symbol *const heads[] = {first, second};
  cohort_symbol *both = NULL;

  ok(cohort_symbol_group(heads, 2, &both));
  cohort_symbol_free(first);
  cohort_symbol_free(second);
  return both;
}

/* Losses and head gradients before the mask and behind it. */
static cohort_symbol *gradients_from_everywhere(cohort_symbol *product) {
  cohort_symbol *inside = NULL, *scaled = NULL, *early, *late;

  ok(cohort_symbol_internals(product, &inside));
  ok(cohort_symbol_output_named(inside, "scaled_output", &scaled));
  cohort_symbol_free(inside);
  early = node("MakeLoss", "early", NO_ATTRS, INPUTS(also(scaled)));
  late = node("MakeLoss", "late", NO_ATTRS, INPUTS(also(product)));
  return two_heads(two_heads(early, node("square", "squares", NO_ATTRS, INPUTS(scaled))), two_heads(late, product));
}

/* A mask behind the mask. */
static cohort_symbol *twice_masked(void) {
  return node("_contrib_boolean_mask", "again", NO_ATTRS,
              INPUTS(masked_product(),
                     node("_contrib_boolean_mask", "second", NO_ATTRS, INPUTS(variable("weights"), variable("rows")))));
}

enum { kRows = 6 };
static const float six_rows[kRows] = {1, 0, 1, 1, 0, 1};

/* The results of two steps: the gradients of w and of the data, and w. */
typedef struct {
  float gradient[2], of_data[2 * kRows], w[2];
} steps_left;

static steps_left two_steps(int kind, size_t num_contexts, const char *grad_req, double loss_scale) {
  cohort_symbol *const symbol = kind == 0   ? masked_product()
                                : kind == 1 ? gradients_from_everywhere(masked_product())
                                            : twice_masked();
  const char *const keys[] = {"learning_rate", "momentum"}, *const values[] = {"0.001", "0.5"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_descs *descs = data_and_index(kRows);
  cohort_ndarray *array;
  cohort_optimizer *sgd = NULL;
  cohort_group *group;
  steps_left left;
  size_t d;
  int step;

  options.inputs_need_grad = 1;
  options.loss_scale = loss_scale;
  options.grad_req = grad_req;
  if (kind == 2) add_desc(descs, "rows", SHAPE(kRows), NULL), add_desc(descs, "weights", SHAPE(kRows), NULL);
  group = bind_for_training(symbol, num_contexts, descs, NULL, NAMES("w"), &options);
  set_param(group, "w", floats(SHAPE(1, 2), FLOATS(1, 2)));
  ok(cohort_optimizer_create("sgd", keys, values, 2, &sgd));
  memset(&left, 0, sizeof left);
  for (step = 0; step < 2; ++step) {
    cohort_ndarray *data[4] = {counted(SHAPE(kRows, 2), 1), floats(SHAPE(kRows), six_rows, kRows),
                               floats(SHAPE(kRows), six_rows, kRows), counted(SHAPE(kRows), 1)};
    cohort_ndarray *heads[4] = {NULL, NULL, NULL, NULL};
    size_t i, num_heads = 1;

    ok(cohort_group_forward(group, data, kind == 2 ? 4 : 2, NULL, 0, 1));
    if (kind == 1) {
      num_heads = 4;
      heads[1] = counted(SHAPE(kRows, 2), 0.5f);
      heads[3] = counted(SHAPE(4, 2), 2);
    } else {
      heads[0] = counted(SHAPE(kind == 2 ? 3 : 4, 2), 1); /* the first of the weights is 0 */
    }
    ok(cohort_group_backward(group, heads, num_heads));
    for (i = 0; i < 4; ++i) cohort_ndarray_free(heads[i]);
    for (i = 0; i < 4; ++i) cohort_ndarray_free(data[i]);
    ok(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE));
    if (step == 0 && loss_scale != 0) ok(cohort_group_set_loss_scale(group, 2 * loss_scale, 0));
  }
  for (d = 0; d < num_contexts; ++d) {
    float part[2];

    array = device_array(group, COHORT_GROUP_GRADS, 0, d);
    ok(cohort_ndarray_read(array, part, sizeof part));
    cohort_ndarray_free(array);
    left.gradient[0] += part[0], left.gradient[1] += part[1];
  }
  array = merged(group, COHORT_GROUP_INPUT_GRADS, 0);
  ok(cohort_ndarray_read(array, left.of_data, sizeof left.of_data));
  cohort_ndarray_free(array);
  array = device_array(group, COHORT_GROUP_PARAMS, 0, num_contexts - 1);
  ok(cohort_ndarray_read(array, left.w, sizeof left.w));
  cohort_ndarray_free(array);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
  return left;
}

/* Gradients are scaled once, wherever they start, and updates are as without a scale; a power of 2 causes no
 * rounding. */
static void a_loss_scale_multiplies_gradients_once(void **state) {
  static const char *const reqs[] = {"write", "add"};
  size_t num, r, i;
  int kind;

  (void)state;
  for (kind = 0; kind < 3; ++kind) {
    for (num = 1; num <= 2; ++num) {
      for (r = 0; r < COUNT(reqs); ++r) {
        const steps_left plain = two_steps(kind, num, reqs[r], 0), scaled = two_steps(kind, num, reqs[r], 1024);

        assert_true(plain.gradient[0] != 0 && plain.w[0] != 1);
        for (i = 0; i < COUNT(plain.gradient); ++i)
          assert_true(scaled.gradient[i] == 2048 * plain.gradient[i] && scaled.w[i] == plain.w[i]);
        for (i = 0; i < COUNT(plain.of_data); ++i) assert_true(scaled.of_data[i] == 2048 * plain.of_data[i]);
      }
    }
  }
}

static void has_scale(const cohort_group *group, double scale, int32_t num_good, uint64_t num_skipped) {
  double found = 0;
  int32_t good = -1;
  uint64_t skipped = 99;

  ok(cohort_group_loss_scale(group, &found, &good, &skipped));
  assert_true(found == scale);
  assert_int_equal(good, num_good);
  assert_int_equal(skipped, num_skipped);
}

/* Gradients overflow on one device, from which the other takes nothing: no device makes the step. */
static void an_overflow_behind_the_mask_skips_the_step_on_all(void **state) {
  size_t num, d;

  (void)state;
  for (num = 1; num <= 3; ++num) {
    cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
    cohort_group *group;

    options.loss_scale = 65536;
    options.loss_scale_window = 1;
    group = bind_for_training(masked_product(), num, data_and_index(6), NULL, NAMES("w"), &options);
    set_param(group, "w", floats(SHAPE(1, 2), FLOATS(1, 2)));
    forward_rows(group, (const float[]){0, 0, 0, 0, 0, 1}, 6, 1);
    backward(group, floats(SHAPE(1, 2), FLOATS(1e35f, 1)));
    update(group);
    for (d = 0; d < num; ++d) holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, d), 1, 2);
    has_scale(group, 32768, 0, 1);
    backward(group, floats(SHAPE(1, 2), FLOATS(1, 1)));
    update(group); /* from gradients (20, 44) */
    for (d = 0; d < num; ++d) holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, d), 0.8f, 1.56f);
    has_scale(group, 65536, 0, 1);
    cohort_group_free(group);
  }
}

/* ---- statistics of all devices ------------------------------------------------------------------------------------
 */

static cohort_symbol *sync_norm(const char *name, const char *fix_gamma, cohort_symbol *data) {
  return node("_contrib_SyncBatchNorm", name, ATTRS("key", name, "fix_gamma", fix_gamma, "momentum", "0.5"),
              INPUTS(data));
}

enum { kNormRows = 12, kNorms = 3 };
static const float norm_rows[kNormRows] = {0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1};
static const float norm_weights[kNormRows] = {1, 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1};
static const char *const norm_params[] = {"before_gamma", "before_beta", "behind_gamma", "behind_beta", "last_gamma",
                                          "last_beta",    NULL};

/* Norms before a mask, behind it and behind a second one; each may be left out. */
static cohort_symbol *norms_and_masks(int which) {
  cohort_symbol *all = variable("data"), *index = variable("index"), *second = NULL;

  if (which & 4) second = node("_contrib_boolean_mask", "second", NO_ATTRS, INPUTS(variable("weights"), also(index)));
  if (which & 1) all = sync_norm("before", "False", all);
  all = node("_contrib_boolean_mask", "taken", NO_ATTRS, INPUTS(all, index));
  if (which & 2) all = sync_norm("behind", "True", node("sin", "act", NO_ATTRS, INPUTS(all)));
  if (!(which & 4)) return all;
  all = node("square", "squares", NO_ATTRS, INPUTS(all));
  return sync_norm("last", "False", node("_contrib_boolean_mask", "again", NO_ATTRS, INPUTS(all, second)));
}

typedef struct {
  float output[2 * kNormRows], of_data[2 * kNormRows];
  float of_params[2 * kNorms][2]; /* of all devices together */
  float states[2 * kNorms][2];
} norm_step;

static cohort_group *bind_norms(int which, size_t num_contexts, const double *workload) {
  cohort_descs *descs = desc("data", SHAPE(kNormRows, 2), NULL);
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;
  size_t p;

  add_desc(descs, "index", SHAPE(kNormRows), NULL);
  if (which & 4) add_desc(descs, "weights", SHAPE(kNormRows), NULL);
  options.inputs_need_grad = 1;
  options.workload = workload;
  options.num_workloads = workload ? num_contexts : 0;
  group = bind_for_training(norms_and_masks(which), num_contexts, descs, NULL, norm_params, &options);
  for (p = 0; p < num_arrays(group, COHORT_GROUP_PARAMS); ++p) {
    const char *name = NULL;

    ok(cohort_group_name(group, COHORT_GROUP_PARAMS, p, &name));
    set_param(group, name, floats(SHAPE(2), FLOATS(0.5f + (float)p, 2 - (float)p)));
  }
  return group;
}

/* Two steps, because the second exchanges statistics through the same memory as the first. */
static norm_step train_norms(cohort_group *group, int which, size_t num_contexts) {
  const int64_t taken = which & 4 ? 5 : 7;
  float values[2 * kNormRows];
  cohort_ndarray *data[3], *array;
  norm_step found;
  size_t i, d, k;
  int step;

  for (i = 0; i < COUNT(values); ++i) values[i] = (float)((i * 7 + 3) % 11) - (float)i * 0.25f;
  memset(&found, 0, sizeof found);
  for (step = 0; step < 2; ++step) {
    data[0] = floats(SHAPE(kNormRows, 2), values, COUNT(values));
    data[1] = floats(SHAPE(kNormRows), norm_rows, kNormRows);
    data[2] = floats(SHAPE(kNormRows), norm_weights, kNormRows);
    ok(cohort_group_forward(group, data, which & 4 ? 3 : 2, NULL, 0, 1));
    for (i = 0; i < 3; ++i) cohort_ndarray_free(data[i]);
    array = merged(group, COHORT_GROUP_OUTPUTS, 0);
    has_shape(array, taken, 2);
    ok(cohort_ndarray_read(array, found.output, 2 * (size_t)taken * sizeof(float)));
    cohort_ndarray_free(array);
    for (i = 0; i < (size_t)(2 * taken); ++i) values[i] = (float)((i * 5 + 1) % 13) / 13 - 0.4f;
    backward(group, floats(SHAPE(taken, 2), values, 2 * (size_t)taken));
    for (i = 0; i < COUNT(values); ++i) values[i] = (float)((i * 3 + 1) % 7) + (float)i * 0.5f;
  }
  array = merged(group, COHORT_GROUP_INPUT_GRADS, 0);
  ok(cohort_ndarray_read(array, found.of_data, sizeof found.of_data));
  cohort_ndarray_free(array);
  for (d = 0; d < num_contexts; ++d) {
    for (k = 0; k < num_arrays(group, COHORT_GROUP_PARAMS); ++k) {
      float part[2];

      array = device_array(group, COHORT_GROUP_GRADS, k, d);
      ok(cohort_ndarray_read(array, part, sizeof part));
      cohort_ndarray_free(array);
      for (i = 0; i < 2; ++i) found.of_params[k][i] += part[i];
    }
  }
  for (k = 0; k < num_arrays(group, COHORT_GROUP_AUX); ++k) {
    array = device_array(group, COHORT_GROUP_AUX, k, num_contexts - 1);
    ok(cohort_ndarray_read(array, found.states[k], sizeof found.states[k]));
    cohort_ndarray_free(array);
  }
  return found;
}

/* One device with the whole batch, and several of which one takes no row, give the same. */
static void norms_on_both_sides_of_a_mask_see_the_whole_batch(void **state) {
  static const double uneven[] = {1, 3, 2};
  int which;

  (void)state;
  for (which = 1; which < 8; ++which) {
    cohort_group *group = bind_norms(which, 1, NULL);
    const norm_step whole = train_norms(group, which, 1);
    size_t num, i;

    cohort_group_free(group);
    for (num = 2; num <= 4; ++num) {
      const size_t num_contexts = num == 4 ? 3 : num;
      norm_step found;
      const float *const expected = (const float *)&whole, *const values = (const float *)&found;

      group = bind_norms(which, num_contexts, num == 4 ? uneven : NULL);
      found = train_norms(group, which, num_contexts);
      cohort_group_free(group);
      for (i = 0; i < sizeof(whole) / sizeof(float); ++i) {
        if (!(fabsf(expected[i] - values[i]) <= 2e-5f * (1 + fabsf(expected[i]))))
          fail_msg("norms %d on %zu devices, number %zu: expected %g, found %g", which, num_contexts, i,
                   (double)expected[i], (double)values[i]);
      }
    }
  }
}

/* The executor of one device alone exchanges no statistics, on either side of the mask; in inference it need not. */
static void one_device_of_norms_does_not_train_by_itself(void **state) {
  int which;

  (void)state;
  for (which = 1; which < 8; ++which) {
    cohort_group *group = bind_norms(which, 2, NULL);
    cohort_executor *executor = NULL;

    ok(cohort_group_executor(group, 1, &executor));
    fails(cohort_executor_forward(executor, 1), COHORT_ERROR_STATE, "train the group");
    ok(cohort_executor_forward(executor, 0));
    ok(cohort_executor_wait(executor));
    cohort_executor_free(executor);
    cohort_group_free(group);
  }
}

/* Work before or behind the mask fails on every device: nobody waits for ever, outputs are invalid, and the group
 * trains on once the statistics are set. */
static void a_failure_among_norms_hangs_nobody(void **state) {
  static const char *const nodes[] = {"before", "taken", "act", "behind", "again", "last"};
  size_t i, d, k;

  (void)state;
  for (i = 0; i < COUNT(nodes); ++i) {
    cohort_group *group;
    cohort_ndarray *output;
    cohort_error *error = NULL;
    cohort_ndarray *data[3] = {counted(SHAPE(kNormRows, 2), 1), floats(SHAPE(kNormRows), norm_rows, kNormRows),
                               floats(SHAPE(kNormRows), norm_weights, kNormRows)};

    setenv("COHORT_FAULT", nodes[i], 1);
    group = bind_norms(7, 3, NULL);
    error = cohort_group_forward(group, data, 3, NULL, 0, 1);
    if (!error) error = cohort_group_wait(group);
    fails(error, COHORT_ERROR_EXECUTION, nodes[i]);
    unsetenv("COHORT_FAULT");
    for (d = 0; d < 3; ++d) {
      output = device_array(group, COHORT_GROUP_OUTPUTS, 0, d);
      if (output && d > 0) fails(cohort_ndarray_wait(output), COHORT_ERROR_EXECUTION, ""); /* device 0 takes no row */
      cohort_ndarray_free(output);
      for (k = 0; k < num_arrays(group, COHORT_GROUP_AUX); ++k)
        fill(device_array(group, COHORT_GROUP_AUX, k, d), k % 2 ? 1 : 0);
    }
    error = cohort_group_wait(group);
    cohort_error_free(error);
    ok(cohort_group_wait(group));
    fails(try_backward(group, NULL), COHORT_ERROR_STATE, "no forward has run");
    cohort_group_free(group);
    for (k = 0; k < 3; ++k) cohort_ndarray_free(data[k]);
  }
}

/* If work behind the mask has failed, the pass has failed once the group was told of it: no update follows from it. */
static void a_failure_behind_the_mask_fails_the_pass(void **state) {
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
      TEST(a_failure_behind_the_mask_fails_the_pass),
      TEST(each_device_takes_its_own_rows),
      TEST(a_group_of_parts_is_reshaped),
      TEST(outputs_of_known_shapes_are_merged),
      TEST(without_a_forward_there_is_no_output),
      TEST(metrics_want_a_forward),
      TEST(a_loss_scale_multiplies_gradients_once),
      TEST(an_overflow_behind_the_mask_skips_the_step_on_all),
      TEST(norms_on_both_sides_of_a_mask_see_the_whole_batch),
      TEST(one_device_of_norms_does_not_train_by_itself),
      TEST(a_failure_among_norms_hangs_nobody),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
