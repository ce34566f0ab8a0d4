/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers by name: their settings; rules where they differ from MXNet's; noise; rules that need whole parameters, in
 * groups that sum gradients in pieces. Their states are in test_optimizer_states.c, the results of MXNet's optimizers
 * in tests/golden/optimizers. */
#include <math.h>

#include "support/group_tests.h"
#include "support/optimizers.h"

static void read(const cohort_ndarray *array, float *values, size_t count) {
  ok(cohort_ndarray_read(array, values, count * sizeof(*values)));
}

/* ---- settings */

static void defaults_are_mxnets(void **state) {
  static const struct {
    const char *name, *key;
    double value;
  } known[] = {{"adadelta", "rho", 0.9},
               {"adadelta", "epsilon", 1e-5},
               {"adamax", "learning_rate", 0.002},
               {"adamax", "beta1", 0.9},
               {"adamax", "beta2", 0.999},
               {"nadam", "learning_rate", 0.001},
               {"nadam", "epsilon", 1e-8},
               {"nadam", "schedule_decay", 0.004},
               {"dcasgd", "momentum", 0},
               {"dcasgd", "lamda", 0.04},
               {"dcasgd", "learning_rate", 0.01},
               {"groupadagrad", "eps", 1e-5},
               {"lamb", "learning_rate", 0.001},
               {"lamb", "epsilon", 1e-6},
               {"lamb", "lower_bound", -1},
               {"lamb", "upper_bound", -1},
               {"lamb", "bias_correction", 1},
               {"lars", "eta", 0.001},
               {"lars", "eps", 0},
               {"lars", "momentum", 0},
               {"lars", "momentum_correction", 1},
               {"lars", "lazy_update", 1},
               {"lbsgd", "warmup_epochs", 5},
               {"lbsgd", "warmup_strategy", 0},
               {"lbsgd", "updates_per_epoch", 32},
               {"lbsgd", "batch_scale", 1},
               {"lbsgd", "begin_epoch", 0},
               {"lbsgd", "num_epochs", 60},
               {"sgld", "learning_rate", 0.01},
               {"sgld", "seed", 0},
               {"test", "rescale_grad", 1},
               {"lbsgd", "momentum", 0}};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(known); ++i) {
    cohort_optimizer *optimizer = create(known[i].name, NULL);
    double found = -99;

    ok(cohort_optimizer_get(optimizer, known[i].key, &found));
    if (found != known[i].value) fail_msg("%s: %s is %g", known[i].name, known[i].key, found);
    cohort_optimizer_free(optimizer);
  }
}

static void what_is_out_of_range_is_refused(void **state) {
  static const struct {
    const char *name, *key, *value, *words;
  } wrong[] = {
      {"adadelta", "rho", "1", "optimizer 'adadelta', setting 'rho': expected at least 0 and below 1, found 1"},
      {"adadelta", "epsilon", "-1", "at least 0, found -1"},
      {"adamax", "beta1", "1.5", "at least 0 and below 1"},
      {"nadam", "beta2", "-0.1", "at least 0 and below 1"},
      {"nadam", "schedule_decay", "-1", "at least 0"},
      {"dcasgd", "lamda", "inf", "a finite number"},
      {"dcasgd", "momentum", "-0.5", "at least 0"},
      {"lars", "eta", "-1", "at least 0"},
      {"lars", "momentum_correction", "2", "momentum_correction"},
      {"lamb", "bias_correction", "maybe", "bias_correction"},
      {"lbsgd", "batch_scale", "0", "at least 1, found 0"},
      {"lbsgd", "batch_scale", "1.5", "a whole number of at least 0"},
      {"lbsgd", "warmup_epochs", "-1", "a whole number of at least 0"},
      {"lbsgd", "warmup_strategy", "cubic", "one of 'linear', 'power2', 'sqrt', 'lars', found 'cubic'"},
      {"groupadagrad", "wd", "0.1", "expected 0, as it has no weight decay, found 0.1"},
      {"sgld", "learning_rate", "-0.1", "expected at least 0"},
      {"sgld", "seed", "0.5", "a whole number"}};
  cohort_optimizer *none = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(wrong); ++i)
    fails(try_create(wrong[i].name, SETTINGS({wrong[i].key, wrong[i].value}), &none), COHORT_ERROR_INVALID_ARGUMENT,
          wrong[i].words);
  fails(try_create("adamax", SETTINGS({"epsilon", "1"}), &none), COHORT_ERROR_NAME, "no setting 'epsilon'");
  assert_null(none);
  none = create("groupadagrad", NULL);
  fails(cohort_optimizer_set(none, "wd", 0.5), COHORT_ERROR_INVALID_ARGUMENT, "no weight decay");
  cohort_optimizer_free(none);
  none = create("lbsgd", SETTINGS({"warmup_strategy", "sqrt"}));
  fails(cohort_optimizer_set(none, "warmup_strategy", 4), COHORT_ERROR_INVALID_ARGUMENT, "3 (lars)");
  fails(cohort_optimizer_set(none, "batch_scale", 0.5), COHORT_ERROR_INVALID_ARGUMENT, "whole number");
  cohort_optimizer_free(none);
}

/* A weight without axes has no rows. */
static void rows_need_an_axis(void **state) {
  cohort_optimizer *optimizer = create("groupadagrad", NULL);
  cohort_ndarray *weight = floats(NULL, 0, FLOATS(1)), *grad = floats(NULL, 0, FLOATS(1));

  (void)state;
  fails(cohort_optimizer_update(optimizer, "w", 0, weight, grad), COHORT_ERROR_SHAPE, "at least one axis");
  holds_free(weight, 1);
  cohort_ndarray_free(grad);
  cohort_optimizer_free(optimizer);
}

/* A limit of 0 or below means no limit, as in MXNet, and reads -1. */
static void a_clip_of_nothing_is_none(void **state) {
  static const struct {
    const char *name, *key;
  } limits[] = {
      {"sgd", "clip_gradient"}, {"rmsprop", "clip_weights"}, {"lamb", "lower_bound"}, {"lamb", "upper_bound"}};
  cohort_optimizer *optimizer = create("sgd", SETTINGS({"learning_rate", "1"}, {"clip_gradient", "0"}));
  cohort_ndarray *weight = floats(SHAPE(2), FLOATS(1, 1));
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(limits); ++i) {
    cohort_optimizer *limited = create(limits[i].name, SETTINGS({limits[i].key, "0"}));
    double value = 7;

    ok(cohort_optimizer_get(limited, limits[i].key, &value));
    assert_true(value == -1);
    ok(cohort_optimizer_set(limited, limits[i].key, 2));
    ok(cohort_optimizer_get(limited, limits[i].key, &value));
    assert_true(value == 2);
    ok(cohort_optimizer_set(limited, limits[i].key, -3));
    ok(cohort_optimizer_get(limited, limits[i].key, &value));
    assert_true(value == -1);
    cohort_optimizer_free(limited);
  }
  update(optimizer, "w", weight, floats(SHAPE(2), FLOATS(2, -3)));
  holds_free(weight, -1, 4);
  cohort_optimizer_free(optimizer);
}

/* ---- rules where they differ from MXNet's on purpose */

static void a_gradient_of_zeros_is_no_step(void **state) {
  cohort_optimizer *optimizer = create("adamax", SETTINGS({"learning_rate", "0.5"}));
  cohort_ndarray *weight = floats(SHAPE(2), FLOATS(3, 3));

  (void)state;
  update(optimizer, "w", weight, floats(SHAPE(2), FLOATS(0, 1)));
  holds(weight, 3, 2.5f);
  update(optimizer, "w", weight, floats(SHAPE(2), FLOATS(NAN, 0)));
  {
    float found[2];

    read(weight, found, 2);
    assert_true(isnan(found[0])); /* no failure is hidden */
  }
  cohort_ndarray_free(weight);
  cohort_optimizer_free(optimizer);
}

/* Parameters that get the same gradients stay equal, whichever is updated first. */
static void parameters_do_not_know_of_each_other(void **state) {
  static const struct {
    const char *name;
    setting settings[5];
  } rules[] = {{"nadam", {{"learning_rate", "0.1"}}},
               {"lars", {{"learning_rate", "9"}, {"momentum", "0.9"}, {"eta", "0.1"}}},
               {"lbsgd", {{"learning_rate", "0.1"}, {"momentum", "0.9"}, {"batch_scale", "2"}}}};
  const char *const keys[] = {"step", "factor"}, *const values[] = {"2", "0.5"};
  size_t i;
  int step;

  (void)state;
  for (i = 0; i < COUNT(rules); ++i) {
    cohort_optimizer *both = create(rules[i].name, rules[i].settings),
                     *single = create(rules[i].name, rules[i].settings);
    cohort_ndarray *a = floats(SHAPE(2), FLOATS(1, 2)), *b = floats(SHAPE(2), FLOATS(1, 2)),
                   *c = floats(SHAPE(2), FLOATS(1, 2));
    float of_a[2], of_b[2], of_c[2];

    ok(cohort_optimizer_set_lr_schedule(both, "factor", keys, values, 2));
    ok(cohort_optimizer_set_lr_schedule(single, "factor", keys, values, 2));
    for (step = 0; step < 6; ++step) {
      const float x = 0.5f - 0.125f * (float)step;

      update(both, "a_weight", a, floats(SHAPE(2), FLOATS(x, 1)));
      update(both, "b_weight", b, floats(SHAPE(2), FLOATS(x, 1)));
      update(single, "c_weight", c, floats(SHAPE(2), FLOATS(x, 1)));
    }
    read(a, of_a, 2);
    read(b, of_b, 2);
    read(c, of_c, 2);
    assert_memory_equal(of_a, of_c, sizeof(of_a));
    assert_memory_equal(of_b, of_c, sizeof(of_b));
    assert_true(of_a[0] != 1);
    cohort_ndarray_free(a);
    cohort_ndarray_free(b);
    cohort_ndarray_free(c);
    cohort_optimizer_free(both);
    cohort_optimizer_free(single);
  }
}

/* With momentum, which MXNet's version refuses. */
static void delays_are_compensated_with_momentum(void **state) {
  cohort_optimizer *optimizer =
      create("dcasgd", SETTINGS({"learning_rate", "0.1"}, {"momentum", "0.5"}, {"lamda", "2"}, {"wd", "0.25"}));
  cohort_ndarray *weight = floats(SHAPE(1), FLOATS(2));
  double w = 2, before = 2, m = 0;
  int step;

  (void)state;
  for (step = 0; step < 5; ++step) {
    const double g = 1 - 0.5 * step;
    float found;

    m = 0.5 * m - 0.1 * (g + 0.25 * w + 2 * g * g * (w - before));
    before = w;
    w += m;
    update(optimizer, "w_weight", weight, floats(SHAPE(1), FLOATS((float)g)));
    read(weight, &found, 1);
    is_near((double)found, w);
  }
  cohort_ndarray_free(weight);
  cohort_optimizer_free(optimizer);
}

/* Two gradients make one step; by then the array that held the first one may hold the next. */
static void gradients_are_gathered_as_they_were(void **state) {
  cohort_optimizer *optimizer =
      create("lbsgd", SETTINGS({"learning_rate", "1"}, {"batch_scale", "2"}, {"warmup_epochs", "0"}));
  cohort_ndarray *weight = floats(SHAPE(1), FLOATS(0)), *grad = floats(SHAPE(1), FLOATS(1));
  const float next = 4;

  (void)state;
  ok(cohort_optimizer_update(optimizer, "w", 0, weight, grad));
  holds(weight, 0);
  ok(cohort_ndarray_write(grad, &next, sizeof(next)));
  ok(cohort_optimizer_update(optimizer, "w", 0, weight, grad));
  holds_free(weight, -5); /* mean 2.5, times 2 */
  cohort_ndarray_free(grad);
  cohort_optimizer_free(optimizer);
}

/* A state of another meaning is not used: a momentum is not taken for a sum. */
static void gathering_may_begin_later(void **state) {
  cohort_optimizer *optimizer =
      create("lbsgd", SETTINGS({"learning_rate", "1"}, {"momentum", "0.5"}, {"warmup_epochs", "0"}));
  cohort_ndarray *weight = floats(SHAPE(1), FLOATS(0));

  (void)state;
  update(optimizer, "w", weight, floats(SHAPE(1), FLOATS(1)));
  holds(weight, -1);
  ok(cohort_optimizer_set(optimizer, "momentum", 0));
  ok(cohort_optimizer_set(optimizer, "batch_scale", 2));
  update(optimizer, "w", weight, floats(SHAPE(1), FLOATS(2))); /* the second gradient: the step is due */
  holds_free(weight, -3);
  cohort_optimizer_free(optimizer);
}

/* ---- noise */

enum { kNoise = 20000 };

/* The weight after one update from zeros with a gradient of zeros: the noise. */
static float *noise_of(cohort_optimizer *optimizer, const char *name, cohort_dtype type) {
  float *const values = calloc(kNoise, sizeof(*values));
  cohort_ndarray *zeros, *weight = NULL, *grad = NULL, *wide = NULL;

  assert_non_null(values);
  zeros = floats(SHAPE(kNoise), values, kNoise);
  ok(cohort_ndarray_cast(zeros, type, &weight));
  ok(cohort_ndarray_cast(zeros, type, &grad));
  update(optimizer, name, weight, grad);
  ok(cohort_ndarray_cast(weight, COHORT_DTYPE_FLOAT32, &wide));
  read(wide, values, kNoise);
  cohort_ndarray_free(zeros);
  cohort_ndarray_free(weight);
  cohort_ndarray_free(wide);
  return values;
}

static int is_same(float *a, float *b) {
  const int same = memcmp(a, b, kNoise * sizeof(*a)) == 0;

  free(a);
  free(b);
  return same;
}

/* The noise is normal with mean 0 and variance lr, and independent between updates and between elements. Bounds are
 * five times the standard deviation of what they bound. */
static void noise_is_normal(void **state) {
  const cohort_dtype types[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_FLOAT64, COHORT_DTYPE_FLOAT16};
  const double n = kNoise, lr = 0.04;
  size_t t;

  (void)state;
  for (t = 0; t < COUNT(types); ++t) {
    cohort_optimizer *optimizer = create("sgld", SETTINGS({"learning_rate", "0.04"}, {"seed", "11"}));
    float *first = noise_of(optimizer, "w", types[t]), *second = noise_of(optimizer, "w", types[t]);
    double mean = 0, square = 0, fourth = 0, next = 0, again = 0;
    size_t i;

    for (i = 0; i < kNoise; ++i) {
      const double x = (double)first[i] / sqrt(lr);

      mean += x / n;
      square += x * x / n;
      fourth += x * x * x * x / n;
      next += x * (double)first[(i + 1) % kNoise] / sqrt(lr) / n;
      again += x * (double)second[i] / sqrt(lr) / n;
    }
    assert_true(fabs(mean) < 5 / sqrt(n));
    assert_true(fabs(square - 1) < 5 * sqrt(2 / n));
    assert_true(fabs(fourth - 3) < 5 * sqrt(96 / n));
    assert_true(fabs(next) < 5 / sqrt(n));
    assert_true(fabs(again) < 5 / sqrt(n));
    free(first);
    free(second);
    cohort_optimizer_free(optimizer);
  }
}

static void noise_repeats_by_seed(void **state) {
  cohort_optimizer *a = create("sgld", SETTINGS({"seed", "5"})), *b = create("sgld", SETTINGS({"seed", "5"})),
                   *c = create("sgld", SETTINGS({"seed", "6"}));
  const cohort_dtype type = COHORT_DTYPE_FLOAT32;

  (void)state;
  assert_true(is_same(noise_of(a, "w", type), noise_of(b, "w", type)));
  assert_true(is_same(noise_of(a, "w", type), noise_of(b, "w", type)));
  assert_false(is_same(noise_of(a, "v", type), noise_of(b, "w", type))); /* by the name, too */
  ok(cohort_optimizer_set(a, "seed", 6));
  free(noise_of(c, "v", type)); /* the first one, which the other has drawn already */
  assert_true(is_same(noise_of(a, "v", type), noise_of(c, "v", type)));
  cohort_optimizer_free(a);
  cohort_optimizer_free(b);
  cohort_optimizer_free(c);
}

/* The formula: half a step along gradient and decay, and no noise at a learning rate of 0. */
static void noise_comes_on_top_of_half_a_step(void **state) {
  cohort_optimizer *optimizer =
      create("sgld", SETTINGS({"learning_rate", "0.5"}, {"wd", "0.5"}, {"rescale_grad", "2"}));
  cohort_ndarray *weight = floats(SHAPE(1), FLOATS(2)), *other = floats(SHAPE(1), FLOATS(2));
  float with, without;

  (void)state;
  update(optimizer, "w_weight", weight, floats(SHAPE(1), FLOATS(3)));
  cohort_optimizer_free(optimizer);
  optimizer = create("sgld", SETTINGS({"learning_rate", "0.5"}));
  update(optimizer, "w_weight", other, floats(SHAPE(1), FLOATS(0)));
  read(weight, &with, 1);
  read(other, &without, 1);
  is_near((double)with - (double)without, -0.25 * (6 + 1));
  ok(cohort_optimizer_set(optimizer, "learning_rate", 0));
  update(optimizer, "w_weight", other, floats(SHAPE(1), FLOATS(7)));
  holds_free(other, without);
  cohort_ndarray_free(weight);
  cohort_optimizer_free(optimizer);
}

/* ---- groups */

enum { kRows = 6, kColumns = 100000, kSteps = 2 };

static const struct rule {
  const char *name;
  setting settings[5];
} kWholes[] = {{"nadam", {{"learning_rate", "0.05"}}}, /* in pieces, like the next two */
               {"dcasgd", {{"momentum", "0.5"}}},
               {"sgld", {{"seed", "3"}}},
               {"groupadagrad", {{"learning_rate", "0.1"}}},
               {"lamb", {{"learning_rate", "0.1"}, {"wd", "0.01"}}},
               {"lars", {{"learning_rate", "20"}, {"momentum", "0.9"}}},
               {"lbsgd", {{"batch_scale", "2"}, {"momentum", "0.5"}}},
               {"lbsgd", {{"warmup_strategy", "lars"}, {"batch_scale", "2"}, {"learning_rate", "0.001"}}}};

static float eighth(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (float)((int)(*seed >> 24) % 16 - 8) / 8 + 0.0625f;
}

static cohort_symbol *network(void) {
  const char *const keys[] = {"__shape__"}, *const values[] = {"(1, 100000)"};
  cohort_symbol *weight = NULL;

  ok(cohort_symbol_variable("row_weight", keys, values, 1, &weight));
  return node("MakeLoss", "loss", NO_ATTRS,
              INPUTS(node("broadcast_mul", "product", NO_ATTRS, INPUTS(variable("data"), weight))));
}

/* A group of several devices gives the same bits as the optimizer that is given the whole sum. */
static void check_whole(const struct rule *rule, size_t num_contexts, cohort_update_mode mode) {
  cohort_optimizer *by_group = create(rule->name, rule->settings), *by_itself = create(rule->name, rule->settings);
  float *const first = malloc(kColumns * sizeof(float)), *const rows = malloc(kRows * kColumns * sizeof(float)),
               *const sum = malloc(kColumns * sizeof(float)), *const found = malloc(kColumns * sizeof(float));
  cohort_group *group = bind_for_training(network(), num_contexts, desc("data", SHAPE(kRows, kColumns), "NC"), NULL,
                                          NAMES("row_weight"), NULL);
  cohort_ndarray *weight, *array;
  uint32_t seed = 5;
  size_t device;
  int step, i;

  assert_true(first && rows && sum && found);
  for (i = 0; i < kColumns; ++i) first[i] = eighth(&seed);
  weight = floats(SHAPE(1, kColumns), first, kColumns);
  set_param(group, "row_weight", floats(SHAPE(1, kColumns), first, kColumns));
  for (step = 0; step < kSteps; ++step) {
    for (i = 0; i < kColumns; ++i) sum[i] = 0;
    for (i = 0; i < kRows * kColumns; ++i) sum[i % kColumns] += rows[i] = eighth(&seed);
    forward(group, floats(SHAPE(kRows, kColumns), rows, kRows * kColumns), NULL, 1);
    backward(group, NULL);
    ok(cohort_group_update(group, by_group, mode));
    update(by_itself, "row_weight", weight, floats(SHAPE(1, kColumns), sum, kColumns));
  }
  read(weight, sum, kColumns);
  assert_memory_not_equal(sum, first, kColumns * sizeof(float));
  for (device = 0; device < num_contexts; ++device) {
    array = device_array(group, COHORT_GROUP_PARAMS, 0, device);
    read(array, found, kColumns);
    for (i = 0; i < kColumns; ++i)
      if (found[i] != sum[i])
        fail_msg("%s, %s: element %d is %.9g on device %zu of %zu, mode %d, expected %.9g", rule->name,
                 rule->settings[0].key, i, (double)found[i], device, num_contexts, (int)mode, (double)sum[i]);
    cohort_ndarray_free(array);
  }
  cohort_ndarray_free(weight);
  cohort_group_free(group);
  cohort_optimizer_free(by_group);
  cohort_optimizer_free(by_itself);
  free(first);
  free(rows);
  free(sum);
  free(found);
}

static void pieces_and_wholes_are_the_same(void **state) {
  size_t i;

  (void)state;
  only_on_one_type();
  for (i = 0; i < COUNT(kWholes); ++i) {
    check_whole(&kWholes[i], 1, COHORT_UPDATE_ON_STORE);
    check_whole(&kWholes[i], 2, COHORT_UPDATE_ON_STORE);
    check_whole(&kWholes[i], 3, COHORT_UPDATE_PER_DEVICE);
  }
}

/* Gradients that were multiplied by a loss scale count without it, although the scale changes between those of a
 * step. */
static void a_loss_scale_is_taken_off_what_is_gathered(void **state) {
  static const char *const strategies[] = {"linear", "lars"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  size_t s;
  int step;

  (void)state;
  options.loss_scale = 256;
  for (s = 0; s < COUNT(strategies); ++s) {
    const setting settings[] = {{"learning_rate", "0.001"},
                                {"batch_scale", "2"},
                                {"warmup_epochs", "0"},
                                {"warmup_strategy", strategies[s]},
                                {NULL, NULL}};
    cohort_group *plain = bind_regression(2, 4, NULL), *scaled = bind_regression(2, 4, &options);
    cohort_optimizer *first = create("lbsgd", settings), *second = create("lbsgd", settings);
    cohort_ndarray *a, *b;
    float of_a[2], of_b[2];

    for (step = 0; step < 4; ++step) {
      cohort_group *both[2];
      size_t g;

      both[0] = plain, both[1] = scaled;
      ok(cohort_group_set_loss_scale(scaled, step % 2 ? 1024 : 256, 0));
      for (g = 0; g < 2; ++g) {
        forward(both[g], floats(SHAPE(4, 2), FLOATS(1, 2, 3, 1, 2, 2, 1, 1)), floats(SHAPE(4, 1), FLOATS(1, 0, 2, 0)),
                1);
        backward(both[g], NULL);
        ok(cohort_group_update(both[g], g ? second : first, COHORT_UPDATE_ON_STORE));
      }
    }
    a = device_array(plain, COHORT_GROUP_PARAMS, 0, 1);
    b = device_array(scaled, COHORT_GROUP_PARAMS, 0, 1);
    read(a, of_a, 2);
    read(b, of_b, 2);
    assert_memory_equal(of_a, of_b, sizeof(of_a)); /* scales are powers of 2 */
    assert_true(of_a[0] != 1);
    cohort_ndarray_free(a);
    cohort_ndarray_free(b);
    cohort_group_free(plain);
    cohort_group_free(scaled);
    cohort_optimizer_free(first);
    cohort_optimizer_free(second);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(defaults_are_mxnets),
                                     TEST(what_is_out_of_range_is_refused),
                                     TEST(rows_need_an_axis),
                                     TEST(a_clip_of_nothing_is_none),
                                     TEST(a_gradient_of_zeros_is_no_step),
                                     TEST(parameters_do_not_know_of_each_other),
                                     TEST(delays_are_compensated_with_momentum),
                                     TEST(gradients_are_gathered_as_they_were),
                                     TEST(gathering_may_begin_later),
                                     TEST(noise_is_normal),
                                     TEST(noise_repeats_by_seed),
                                     TEST(noise_comes_on_top_of_half_a_step),
                                     TEST(pieces_and_wholes_are_the_same),
                                     TEST(a_loss_scale_is_taken_off_what_is_gathered)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
