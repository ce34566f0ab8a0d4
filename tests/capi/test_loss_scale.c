/* SPDX-License-Identifier: Apache-2.0 */
/* The loss scale of groups and managers: gradients are larger, updates are not, and those that overflow are skipped. */
#include <math.h>
#include <stdio.h>

#include "support/scale_op.h"

static cohort_group_options scaled(double scale, int32_t window) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  options.loss_scale = scale;
  options.loss_scale_window = window;
  return options;
}

static cohort_optimizer *sgd(const char *momentum) {
  const char *const keys[] = {"learning_rate", "rescale_grad", "momentum"};
  const char *values[] = {"0.5", "0.25", momentum};
  cohort_optimizer *optimizer = NULL;

  ok(cohort_optimizer_create("sgd", keys, values, 3, &optimizer));
  return optimizer;
}

/* Runs forward and backward on four rows of (x, 1), whose labels are 0. */
static void run(cohort_group *group, float x) {
  forward(group, floats(SHAPE(4, 2), FLOATS(x, 1, x, 1, x, 1, x, 1)), floats(SHAPE(4, 1), FLOATS(0, 0, 0, 0)), 1);
  backward(group, NULL);
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

/* Checks that the arrays of a device are those of another group times a factor. */
static void are_times(cohort_group *plain, cohort_group *group, int32_t what, size_t device, float factor) {
  cohort_ndarray *expected = device_array(plain, what, 0, device), *found = device_array(group, what, 0, device);
  float a[2], b[2];

  ok(cohort_ndarray_read(expected, a, sizeof(a)));
  ok(cohort_ndarray_read(found, b, sizeof(b)));
  assert_true(a[0] != 0 && b[0] == factor * a[0] && b[1] == factor * a[1]);
  cohort_ndarray_free(expected);
  cohort_ndarray_free(found);
}

/* On one device and on three, in every mode: gradients are scaled, updates are as without a scale. */
static void an_update_is_as_without(void **state) {
  size_t num_contexts;
  int32_t mode;

  (void)state;
  for (num_contexts = 1; num_contexts <= 2; ++num_contexts) {
    for (mode = COHORT_UPDATE_ON_STORE; mode <= COHORT_UPDATE_NO_STORE; ++mode) {
      const cohort_group_options options = scaled(1024, 0);
      cohort_group *plain = bind_regression(num_contexts, 4, NULL), *group = bind_regression(num_contexts, 4, &options);
      cohort_optimizer *first = sgd("0.5"), *second = sgd("0.5");
      double rescale = 0;
      int step;

      for (step = 0; step < 3; ++step) {
        run(plain, 2);
        run(group, 2);
        if (step == 0) are_times(plain, group, COHORT_GROUP_GRADS, 0, 1024);
        ok(cohort_group_update(plain, first, mode));
        ok(cohort_group_update(group, second, mode));
      }
      are_times(plain, group, COHORT_GROUP_PARAMS, num_contexts - 1, 1);
      has_scale(group, 1024, 3, 0);
      has_scale(plain, 1, 0, 0);
      ok(cohort_optimizer_get(second, "rescale_grad", &rescale));
      assert_true(rescale == 0.25);
      cohort_group_free(plain);
      cohort_group_free(group);
      cohort_optimizer_free(first);
      cohort_optimizer_free(second);
    }
  }
}

/* If the data of one device overflow, no device is updated, the optimizer counts no update, and training goes on. */
static void an_overflow_skips_the_update_on_all_devices(void **state) {
  const cohort_group_options options = scaled(65536, 0);
  cohort_group *group = bind_regression(2, 4, &options);
  cohort_optimizer *optimizer = sgd("0");
  double updates = -1;
  size_t device;

  (void)state;
  forward(group, floats(SHAPE(4, 2), FLOATS(1, 1, 1, 1, 1, 1, 1e38f, 1)), floats(SHAPE(4, 1), FLOATS(0, 0, 0, 0)), 1);
  backward(group, NULL);
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  for (device = 0; device < 2; ++device) holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, device), 1, 10);
  has_scale(group, 32768, 0, 1);
  ok(cohort_optimizer_get(optimizer, "num_update", &updates));
  assert_true(updates == 0);
  run(group, 1);
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  /* The gradient is (11, 11) from each of four rows. */
  for (device = 0; device < 2; ++device) holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, device), -4.5f, 4.5f);
  has_scale(group, 32768, 1, 1);
  cohort_group_free(group);
  cohort_optimizer_free(optimizer);
}

static void it_doubles_after_good_updates(void **state) {
  const cohort_group_options options = scaled(8388608, 2);
  cohort_group *group = bind_regression(1, 4, &options);
  cohort_optimizer *optimizer = sgd("0");
  int step;

  (void)state;
  for (step = 0; step < 2; ++step) {
    run(group, 0);
    ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  }
  has_scale(group, 16777216, 0, 0);
  for (step = 0; step < 2; ++step) {
    run(group, 0);
    ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  }
  has_scale(group, 16777216, 0, 0); /* 2^24 is the largest */
  cohort_group_free(group);
  cohort_optimizer_free(optimizer);
}

/* Scaling also applies to head gradients, and to losses and head gradients in one network. */
static void head_gradients_are_scaled(void **state) {
  const cohort_group_options options = scaled(16, 0);
  cohort_group *group =
      bind_for_training(linear("1"), 1, desc("data", SHAPE(2, 2), NULL), NULL, NAMES("fc_weight"), &options);

  (void)state;
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 1)));
  forward(group, floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)), NULL, 1);
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 10)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 16 * 31, 16 * 42);
  cohort_group_free(group);
}

static void a_checkpoint_can_keep_it(void **state) {
  const cohort_group_options options = scaled(4, 3);
  cohort_group *group = bind_regression(1, 4, &options), *plain = bind_regression(1, 4, NULL);

  (void)state;
  ok(cohort_group_set_loss_scale(group, 0.5, 2));
  has_scale(group, 0.5, 2, 0);
  fails(cohort_group_set_loss_scale(group, 0, 0), COHORT_ERROR_INVALID_ARGUMENT, "loss_scale: expected");
  fails(cohort_group_set_loss_scale(group, NAN, 0), COHORT_ERROR_INVALID_ARGUMENT, "loss_scale: expected");
  fails(cohort_group_set_loss_scale(group, 2, 3), COHORT_ERROR_INVALID_ARGUMENT, "num_good: expected 0 to 2");
  fails(cohort_group_set_loss_scale(plain, 2, 0), COHORT_ERROR_STATE, "loss_scale");
  has_scale(group, 0.5, 2, 0);
  cohort_group_free(group);
  cohort_group_free(plain);
}

static void bad_scales_are_refused(void **state) {
  const double scales[] = {-1, INFINITY, NAN, 1e30};
  cohort_group *group = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(scales); ++i) {
    const cohort_group_options options = scaled(scales[i], 0);

    fails(try_bind(&group, linear("1"), 1, desc("data", SHAPE(2, 2), NULL), NULL, NAMES("fc_weight"), &options),
          COHORT_ERROR_INVALID_ARGUMENT, "loss_scale: expected");
  }
  {
    const cohort_group_options options = scaled(2, -1);

    fails(try_bind(&group, linear("1"), 1, desc("data", SHAPE(2, 2), NULL), NULL, NAMES("fc_weight"), &options),
          COHORT_ERROR_INVALID_ARGUMENT, "loss_scale_window");
  }
}

/* Groups that share parameters, like the buckets of a manager, have one scale. */
static void groups_that_share_have_one(void **state) {
  cohort_group_options options = scaled(64, 0);
  cohort_group *first = bind_regression(1, 4, &options), *second;

  (void)state;
  options.shared_group = first;
  second = bind_for_training(regression("1"), 1, desc("data", SHAPE(2, 2), NULL), desc("label", SHAPE(2, 1), NULL),
                             NAMES("fc_weight"), &options);
  ok(cohort_group_set_loss_scale(second, 8, 1));
  has_scale(first, 8, 1, 0);
  cohort_group_free(first);
  cohort_group_free(second);
}

/* Each device's gradient fits float16, their sum does not: where the sum is needed, nothing is updated. */
static void sums_that_overflow_skip_the_update(void **state) {
  const int32_t modes[] = {COHORT_UPDATE_ON_STORE, COHORT_UPDATE_PER_DEVICE, COHORT_UPDATE_NO_STORE};
  const cohort_context *const contexts = test_contexts();
  const char *const params[] = {"shift"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(modes); ++i) {
    const cohort_group_options options = scaled(32768, 0);
    cohort_symbol *symbol = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("shift")));
    cohort_ndarray *ones = floats(SHAPE(2), FLOATS(1, 1)), *half = NULL, *shift, *wide = NULL;
    cohort_optimizer *optimizer = sgd("0");
    cohort_descs *data = NULL;
    cohort_group *group = NULL;
    int step;

    ok(cohort_descs_create(&data));
    ok(cohort_descs_add(data, "data", SHAPE(2), COHORT_DTYPE_FLOAT16, "C"));
    ok(cohort_group_create(symbol, contexts, 2, data, NULL, params, 1, 1, &options, &group));
    cohort_symbol_free(symbol);
    cohort_descs_free(data);
    ok(cohort_ndarray_cast(ones, COHORT_DTYPE_FLOAT16, &half));
    for (step = 0; step < 2; ++step) {
      ok(cohort_group_forward(group, &half, 1, NULL, 0, 1));
      ok(cohort_group_backward(group, &half, 1));
      ok(cohort_group_update(group, optimizer, modes[i]));
    }
    shift = device_array(group, COHORT_GROUP_PARAMS, 0, 1);
    ok(cohort_ndarray_cast(shift, COHORT_DTYPE_FLOAT32, &wide));
    holds_free(wide, -0.25f, -0.25f); /* from two devices in one step, or from one in two */
    if (modes[i] == COHORT_UPDATE_NO_STORE) {
      has_scale(group, 32768, 2, 0);
    } else {
      has_scale(group, 16384, 1, 1);
    }
    cohort_ndarray_free(shift);
    cohort_ndarray_free(ones);
    cohort_ndarray_free(half);
    cohort_optimizer_free(optimizer);
    cohort_group_free(group);
  }
}

/* An update divides by the factor that its gradients were multiplied by, even if the factor has changed since. */
static void an_update_divides_by_what_backward_took(void **state) {
  cohort_group_options options = scaled(16, 0);
  cohort_group *group = bind_regression(1, 4, &options);
  cohort_optimizer *optimizer = sgd("0");

  (void)state;
  run(group, 1);
  ok(cohort_group_set_loss_scale(group, 1, 0));
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), -4.5f, 4.5f);
  cohort_group_free(group);

  options.loss_scale_window = 1;
  group = bind_regression(1, 4, &options);
  run(group, 1);
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 0), -10, -1);
  has_scale(group, 64, 0, 0);
  cohort_group_free(group);
  cohort_optimizer_free(optimizer);
}

/* Passes whose gradients are added have one factor, that of the last one, though it changes between them, or between an
 * update and the next pass. */
static void passes_that_add_up_have_one_factor(void **state) {
  size_t num_contexts;

  (void)state;
  for (num_contexts = 1; num_contexts <= 2; ++num_contexts) {
    cohort_group_options options = scaled(16, 1);
    cohort_group *group, *plain;
    cohort_optimizer *optimizer = sgd("0"), *other = sgd("0");

    options.grad_req = "add";
    group = bind_regression(num_contexts, 4, &options);
    options.loss_scale = 0;
    options.loss_scale_window = 0;
    plain = bind_regression(num_contexts, 4, &options);
    run(group, 1);
    run(plain, 1);
    ok(cohort_group_set_loss_scale(group, 64, 0));
    run(group, 2);
    run(plain, 2);
    ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE)); /* doubles it */
    ok(cohort_group_update(plain, other, COHORT_UPDATE_ON_STORE));
    has_scale(group, 128, 0, 0);
    run(group, 0.5f);
    run(plain, 0.5f);
    are_times(plain, group, COHORT_GROUP_GRADS, 0, 128);
    cohort_group_free(group);
    cohort_group_free(plain);
    cohort_optimizer_free(optimizer);
    cohort_optimizer_free(other);
  }
}

/* The same where one group adds to gradients that another one has left in shared arrays, with larger batches and with
 * gradients that the other one does not have. */
static void passes_of_several_groups_that_add_up_have_one_factor(void **state) {
  cohort_group *groups[2][2]; /* without a loss scale and with one; of the larger batch, of the smaller one */
  cohort_optimizer *optimizers[2];
  float found[2][2], weights[2][2];
  int scales;

  (void)state;
  for (scales = 0; scales < 2; ++scales) {
    cohort_group_options options = scaled(scales ? 16 : 0, 0);
    cohort_group **const both = groups[scales];
    cohort_ndarray *array;

    options.grad_req = "add";
    optimizers[scales] = sgd("0");
    both[0] = bind_regression(2, 4, &options);
    options.shared_group = both[0];
    both[1] = bind_for_training(regression("1"), 1, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                                NAMES("fc_weight"), &options);
    run(both[0], 1);
    if (scales) ok(cohort_group_set_loss_scale(both[1], 64, 0));
    run(both[1], 2);
    array = device_array(both[0], COHORT_GROUP_GRADS, 0, 0);
    ok(cohort_ndarray_read(array, found[scales], sizeof(found[scales])));
    cohort_ndarray_free(array);
    ok(cohort_group_update(both[0], optimizers[scales], COHORT_UPDATE_ON_STORE));
    array = device_array(both[0], COHORT_GROUP_PARAMS, 0, 0);
    ok(cohort_ndarray_read(array, weights[scales], sizeof(weights[scales])));
    cohort_ndarray_free(array);
  }
  assert_true(found[0][0] != 0 && found[1][0] == 64 * found[0][0] && found[1][1] == 64 * found[0][1]);
  assert_true(weights[0][0] != 1 && weights[0][0] == weights[1][0] && weights[0][1] == weights[1][1]);
  for (scales = 0; scales < 2; ++scales) {
    cohort_group_free(groups[scales][0]);
    cohort_group_free(groups[scales][1]);
    cohort_optimizer_free(optimizers[scales]);
  }
}

/* The factor is saved with the optimizer's states, so that training resumes with it. */
static void it_is_saved_with_the_states(void **state) {
  const cohort_group_options options = scaled(1024, 2);
  cohort_group *first = bind_regression(1, 4, &options), *second = bind_regression(2, 4, &options), *third;
  cohort_optimizer *optimizer = sgd("0"), *restored = sgd("0"), *without = sgd("0");
  unsigned char *bytes;
  size_t size = 0, i;
  double scale = 0;
  int32_t good = -1;
  uint64_t skipped = 99;

  (void)state;
  ok(cohort_optimizer_loss_scale(optimizer, &scale, &good, &skipped));
  assert_true(scale == 1 && good == 0 && skipped == 0);
  for (i = 0; i < 3; ++i) {
    run(first, i == 0 ? 1e38f : 1);
    ok(cohort_group_update(first, optimizer, COHORT_UPDATE_ON_STORE));
  }
  run(first, 1);
  ok(cohort_group_update(first, optimizer, COHORT_UPDATE_ON_STORE)); /* halved, doubled, and one good update */
  has_scale(first, 1024, 1, 1);
  ok(cohort_optimizer_save_states_memory(optimizer, NULL, 0, &size));
  bytes = malloc(size);
  assert_non_null(bytes);
  ok(cohort_optimizer_save_states_memory(optimizer, bytes, size, &size));

  ok(cohort_group_set_loss_scale(second, 8, 0));
  ok(cohort_optimizer_load_states_memory(restored, bytes, size));
  ok(cohort_optimizer_loss_scale(restored, &scale, &good, &skipped));
  assert_true(scale == 1024 && good == 1 && skipped == 1);
  run(second, 1);
  ok(cohort_group_update(second, restored, COHORT_UPDATE_ON_STORE));
  has_scale(second, 2048, 0, 1);
  holds_free(device_array(second, COHORT_GROUP_PARAMS, 0, 1), -4.5f, 4.5f); /* divided by 8 */

  /* Without a scale the file has the same form as before scales existed; an invalid scale is refused. */
  third = bind_regression(1, 4, NULL);
  run(third, 1);
  ok(cohort_group_update(third, without, COHORT_UPDATE_ON_STORE));
  {
    unsigned char start[9];
    size_t whole = 0;
    unsigned char *plain;

    ok(cohort_optimizer_save_states_memory(without, NULL, 0, &whole));
    plain = malloc(whole);
    assert_non_null(plain);
    ok(cohort_optimizer_save_states_memory(without, plain, whole, &whole));
    memcpy(start, plain, sizeof(start));
    assert_int_equal(start[8], 1);
    assert_int_equal(bytes[8], 2);
    free(plain);
  }
  {
    const int32_t most = INT32_MAX; /* one beyond the largest is infinite */

    memcpy(bytes + 8 + 4 + 4 + strlen("sgd/0/0") + 8 + 8, &most, sizeof most);
    fails(cohort_optimizer_load_states_memory(restored, bytes, size), COHORT_ERROR_FORMAT, "2147483647 good updates");
  }
  memset(bytes + 8 + 4 + 4 + strlen("sgd/0/0") + 8, 0, 8);
  fails(cohort_optimizer_load_states_memory(restored, bytes, size), COHORT_ERROR_FORMAT, "invalid loss scale 0");
  free(bytes);
  cohort_group_free(first);
  cohort_group_free(second);
  cohort_group_free(third);
  cohort_optimizer_free(optimizer);
  cohort_optimizer_free(restored);
  cohort_optimizer_free(without);
}

enum { kRows = 600, kColumns = 1000, kSteps = 40 };

/* A regression on rows of many numbers, through functions that are slow to compute. */
static cohort_symbol *slow_regression(void) {
  cohort_symbol *symbol = variable("data");
  int i;

  for (i = 0; i < kSteps; ++i) {
    char name[16];

    snprintf(name, sizeof(name), "step%d", i);
    symbol = node(i % 2 ? "arctanh" : "tanh", name, NO_ATTRS, INPUTS(symbol));
  }
  symbol = node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "1"), INPUTS(symbol));
  return node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(symbol, variable("label")));
}

/* A queued pass keeps its factor when another group with the same scale, which has finished, changes it. */
static void a_queued_pass_keeps_its_factor(void **state) {
  const int64_t slices[] = {0, 1, 1, kRows};
  cohort_group_options options = scaled(64, 0);
  cohort_group *slow, *fast;
  cohort_optimizer *optimizer = sgd("0");
  float first[kColumns], again[kColumns];
  int pass;

  (void)state;
  options.slices = slices;
  options.num_slices = 2;
  slow = bind_for_training(slow_regression(), 2, desc("data", SHAPE(kRows, kColumns), NULL),
                           desc("label", SHAPE(kRows, 1), NULL), NAMES("fc_weight"), &options);
  options = scaled(64, 0);
  options.shared_group = slow;
  fast = bind_for_training(regression("1"), 1, desc("data", SHAPE(1, kColumns), NULL), desc("label", SHAPE(1, 1), NULL),
                           NAMES("fc_weight"), &options);
  for (pass = 0; pass < 2; ++pass) {
    cohort_ndarray *huge = counted(SHAPE(1, kColumns), 1e38f), *gradient;

    forward(slow, counted(SHAPE(kRows, kColumns), 1e-6f), counted(SHAPE(kRows, 1), 1), 1);
    backward(slow, NULL);
    if (pass == 1) {
      forward(fast, huge, counted(SHAPE(1, 1), 1), 1);
      backward(fast, NULL);
      ok(cohort_group_update(fast, optimizer, COHORT_UPDATE_ON_STORE));
      has_scale(slow, 32, 0, 1);
    } else {
      cohort_ndarray_free(huge);
    }
    gradient = device_array(slow, COHORT_GROUP_GRADS, 0, 1);
    ok(cohort_ndarray_read(gradient, pass == 0 ? first : again, sizeof(first)));
    cohort_ndarray_free(gradient);
  }
  assert_true(first[kColumns - 1] != 0);
  assert_memory_equal(first, again, sizeof(first));
  cohort_group_free(slow);
  cohort_group_free(fast);
  cohort_optimizer_free(optimizer);
}

/* Gradients that start inside an operator cannot be scaled: such an operator is refused by its node's name. */
static void gradients_that_cannot_be_scaled_are_refused(void **state) {
  const cohort_group_options options = scaled(4, 0);
  int scales;

  (void)state;
  for (scales = 0; scales <= 1; ++scales) {
    cohort_symbol *penalty = node("IdentityAttachKLSparseReg", "reg", NO_ATTRS, INPUTS(linear("1")));
    cohort_symbol *loss = node("LinearRegressionOutput", "inner", NO_ATTRS, INPUTS(variable("a"), variable("b")));
    cohort_symbol *body = node("_CachedOp", "net", NO_ATTRS, INPUTS(loss, linear("1"), variable("label")));
    cohort_symbol *networks[2];
    const char *const names[] = {"'reg'", "'inner'"};
    size_t i;

    networks[0] = penalty;
    networks[1] = body;
    for (i = 0; i < COUNT(networks); ++i) {
      cohort_descs *label = i == 1 ? desc("label", SHAPE(2, 1), NULL) : NULL;
      cohort_group *group = NULL;
      cohort_error *error = try_bind(&group, networks[i], 1, desc("data", SHAPE(2, 2), NULL), label, NAMES("fc_weight"),
                                     scales ? &options : NULL);

      if (scales) {
        fails(error, COHORT_ERROR_UNSUPPORTED, names[i]);
        assert_null(group);
      } else {
        ok(error);
        cohort_group_free(group);
      }
    }
  }
}

/* A rebind that fails changes nothing; one without a shared group separates the group from the one it shared with. */
static void a_rebind_has_its_own(void **state) {
  const cohort_group_options options = scaled(64, 0), others = scaled(8, 0);
  cohort_group *group = bind_regression(1, 4, &options), *other = bind_regression(1, 4, &others);
  cohort_descs *data = desc("data", SHAPE(2, 3), NULL), *label = desc("label", SHAPE(2, 1), NULL);

  (void)state;
  fails(cohort_group_bind(group, data, label, other, 1), COHORT_ERROR_SHAPE, "fc_weight");
  cohort_descs_free(data);
  has_scale(group, 64, 0, 0);
  ok(cohort_group_set_loss_scale(group, 16, 0));
  has_scale(other, 8, 0, 0);

  data = desc("data", SHAPE(2, 2), NULL);
  ok(cohort_group_bind(group, data, label, other, 1));
  ok(cohort_group_set_loss_scale(other, 32, 1));
  has_scale(group, 32, 1, 0);
  ok(cohort_group_bind(group, data, label, NULL, 1));
  has_scale(group, 32, 1, 0);
  ok(cohort_group_set_loss_scale(group, 2, 0));
  has_scale(other, 32, 1, 0);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_group_free(group);
  cohort_group_free(other);
}

/* An update reads the gradients, so it is the call that reports that backward failed, as the operator's failure, and no
 * later call reports it again. */
static void a_failed_backward_is_told_once(void **state) {
  host self;
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_optimizer *sgd = NULL;
  cohort_group *group = NULL;
  cohort_error *error;
  int round;

  (void)state;
  begin(&self, 1);
  options.loss_scale = 8;
  group = bind_for_training(scale_node("3", linear("2")), 2, desc("data", SHAPE(2, 3), NULL), NULL, NAMES("fc_weight"),
                            &options);
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &sgd));
  for (round = 0; round < 2; ++round) {
    forward(group, counted(SHAPE(2, 3), 1), NULL, 1);
    self.fail_backward = 9;
    backward(group, counted(SHAPE(2, 2), 1));
    error = cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE);
    assert_int_equal(cohort_error_code(error), COHORT_ERROR_EXECUTION);
    assert_non_null(strstr(cohort_error_message(error), "callback 'backward' returned 9"));
    assert_null(strstr(cohort_error_message(error), "not written"));
    assert_non_null(strstr(cohort_error_subject(error), "'scale'"));
    cohort_error_free(error);
    self.fail_backward = 0;
    ok(cohort_group_wait(group));
    ok(cohort_wait_all());
    fails(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE), COHORT_ERROR_STATE, "or the last one failed");
    holds_free(device_array(group, COHORT_GROUP_PARAMS, 0, 1), 0, 0, 0, 0, 0, 0);
  }
  forward(group, counted(SHAPE(2, 3), 1), NULL, 1);
  backward(group, counted(SHAPE(2, 2), 1));
  ok(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE));
  ok(cohort_group_wait(group));
  cohort_group_free(group);
  cohort_optimizer_free(sgd);
  end(&self);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_update_is_as_without),
      TEST(an_overflow_skips_the_update_on_all_devices),
      TEST(it_doubles_after_good_updates),
      TEST(head_gradients_are_scaled),
      TEST(a_checkpoint_can_keep_it),
      TEST(bad_scales_are_refused),
      TEST(groups_that_share_have_one),
      TEST(sums_that_overflow_skip_the_update),
      TEST(an_update_divides_by_what_backward_took),
      TEST(passes_that_add_up_have_one_factor),
      TEST(passes_of_several_groups_that_add_up_have_one_factor),
      TEST(it_is_saved_with_the_states),
      TEST(a_queued_pass_keeps_its_factor),
      TEST(gradients_that_cannot_be_scaled_are_refused),
      TEST(a_rebind_has_its_own),
      TEST(a_failed_backward_is_told_once),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
