/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients summed over devices in bfloat16: what is rounded and what is not, how far a sum may be off, and that the
 * same run gives the same bits. */
#include <math.h>
#include <string.h>

#include "support/group_tests.h"

static cohort_group_options summed_in(cohort_dtype dtype) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  options.gradient_sum_dtype = dtype;
  return options;
}

/* sgd with learning rate 1: the weight becomes the weight minus the sum. */
static cohort_optimizer *plain_sgd(void) {
  const char *const keys[] = {"learning_rate", "rescale_grad"}, *const ones[] = {"1", "1"};
  cohort_optimizer *optimizer = NULL;

  ok(cohort_optimizer_create("sgd", keys, ones, 2, &optimizer));
  return optimizer;
}

/* Each device gets one row (x, 0), whose gradient is (x, 0): the output is x, its label x - 1. Runs one update of the
 * weights (1, 10). */
static cohort_group *updated(size_t num_contexts, const float *x, cohort_dtype dtype, cohort_update_mode mode) {
  const cohort_group_options options = summed_in(dtype);
  cohort_group *group = bind_regression(num_contexts, (int64_t)num_contexts, &options);
  cohort_optimizer *optimizer = plain_sgd();
  float rows[6], labels[3];
  size_t d;

  for (d = 0; d < num_contexts; ++d) {
    rows[2 * d] = x[d];
    rows[2 * d + 1] = 0;
    labels[d] = x[d] - 1;
  }
  forward(group, floats(SHAPE((int64_t)num_contexts, 2), rows, 2 * num_contexts),
          floats(SHAPE((int64_t)num_contexts, 1), labels, num_contexts), 1);
  backward(group, NULL);
  ok(cohort_group_update(group, optimizer, mode));
  cohort_optimizer_free(optimizer);
  return group;
}

static float first_of(cohort_ndarray *array) {
  float values[2];

  ok(cohort_ndarray_read(array, values, sizeof(values)));
  cohort_ndarray_free(array);
  return values[0];
}

static float weight_on(const cohort_group *group, size_t device) {
  return first_of(device_array(group, COHORT_GROUP_PARAMS, 0, device));
}

static float gradient_on(const cohort_group *group, size_t device) {
  return first_of(device_array(group, COHORT_GROUP_GRADS, 0, device));
}

/* A number between two bfloat16 numbers, nearer to the upper one. */
static const float kBetween = 1 + 1 / 256.0f + 1 / 512.0f, kAbove = 1 + 1 / 128.0f;

static void float32_is_the_default(void **state) {
  const float x[] = {kBetween, kBetween};
  cohort_group *group = updated(2, x, 0, COHORT_UPDATE_ON_STORE);

  (void)state;
  assert_true(weight_on(group, 0) == 1 - 2 * kBetween);
  cohort_group_free(group);
}

static void gradients_are_rounded_and_then_their_sum(void **state) {
  const float both[] = {kBetween, kBetween}, half_way[] = {1, kAbove}, three[] = {1, kAbove, 1 / 256.0f};
  cohort_group *group;
  size_t d;

  (void)state;
  group = updated(2, both, COHORT_DTYPE_BFLOAT16, COHORT_UPDATE_ON_STORE);
  for (d = 0; d < 2; ++d) assert_true(weight_on(group, d) == 1 - 2 * kAbove);
  cohort_group_free(group);
  /* 2 + 1/128 is half way between 2 and 2 + 1/64, and is rounded to the even one. */
  group = updated(2, half_way, COHORT_DTYPE_BFLOAT16, COHORT_UPDATE_ON_STORE);
  for (d = 0; d < 2; ++d) assert_true(weight_on(group, d) == 1 - 2);
  cohort_group_free(group);
  /* CPUs add intermediate sums in float32; a bfloat16 sum would have lost the last term here. */
  group = updated(3, three, COHORT_DTYPE_BFLOAT16, COHORT_UPDATE_ON_STORE);
  if (test_contexts()[0].device_type == COHORT_DEVICE_CPU) assert_true(weight_on(group, 2) == 1 - (2 + 1 / 64.0f));
  cohort_group_free(group);
}

static void a_sum_in_the_gradients_place_is_float32_again(void **state) {
  const float x[] = {kBetween, kBetween};
  cohort_group *group = updated(2, x, COHORT_DTYPE_BFLOAT16, COHORT_UPDATE_PER_DEVICE);
  size_t d;

  (void)state;
  for (d = 0; d < 2; ++d) {
    assert_true(gradient_on(group, d) == 2 * kAbove);
    assert_true(weight_on(group, d) == 1 - 2 * kAbove);
  }
  cohort_group_free(group);
}

static void gradients_that_are_not_summed_are_not_rounded(void **state) {
  const float x[] = {kBetween, kBetween};
  cohort_group *group = updated(1, x, COHORT_DTYPE_BFLOAT16, COHORT_UPDATE_PER_DEVICE);

  (void)state;
  assert_true(weight_on(group, 0) == 1 - kBetween);
  cohort_group_free(group);
  group = updated(2, x, COHORT_DTYPE_BFLOAT16, COHORT_UPDATE_NO_STORE);
  assert_true(weight_on(group, 1) == 1 - kBetween);
  cohort_group_free(group);
  group = updated(2, x, COHORT_DTYPE_BFLOAT16, COHORT_UPDATE_ON_STORE);
  assert_true(gradient_on(group, 1) == kBetween);
  cohort_group_free(group);
}

enum { kInputs = 300, kUnits = 64, kBatch = 12, kWeights = kInputs * kUnits };

/* The weight of an fc layer over random numbers, after some steps. */
static cohort_group *trained(size_t num_contexts, size_t bucket_bytes, cohort_update_mode mode, int num_steps,
                             float *last_gradients) {
  cohort_group_options options = summed_in(COHORT_DTYPE_BFLOAT16);
  const char *const keys[] = {"learning_rate", "rescale_grad", "momentum"}, *const values[] = {"0.001", "1", "0.9"};
  cohort_optimizer *optimizer = NULL;
  static float rows[kBatch * kInputs], labels[kBatch * kUnits];
  cohort_group *group;
  uint32_t seed = 7;
  size_t i, d;
  int step;

  options.gradient_bucket_bytes = bucket_bytes;
  group = bind_for_training(regression("64"), num_contexts, desc("data", SHAPE(kBatch, kInputs), "NC"),
                            desc("label", SHAPE(kBatch, kUnits), "NC"), NAMES("fc_weight"), &options);
  ok(cohort_optimizer_create("sgd", keys, values, 3, &optimizer));
  for (step = 0; step < num_steps; ++step) {
    for (i = 0; i < COUNT(rows) + COUNT(labels); ++i) {
      seed = seed * 1664525u + 1013904223u;
      *(i < COUNT(rows) ? &rows[i] : &labels[i - COUNT(rows)]) = (float)(seed >> 8) / (1 << 23) - 1;
    }
    forward(group, floats(SHAPE(kBatch, kInputs), rows, COUNT(rows)),
            floats(SHAPE(kBatch, kUnits), labels, COUNT(labels)), 1);
    backward(group, NULL);
    for (d = 0; last_gradients && step + 1 == num_steps && d < num_contexts; ++d) {
      cohort_ndarray *const grad = device_array(group, COHORT_GROUP_GRADS, 0, d);

      ok(cohort_ndarray_read(grad, last_gradients + d * kWeights, kWeights * sizeof(float)));
      cohort_ndarray_free(grad);
    }
    ok(cohort_group_update(group, optimizer, mode));
  }
  cohort_optimizer_free(optimizer);
  return group;
}

static void read_weights(const cohort_group *group, size_t device, float *weights) {
  cohort_ndarray *const array = device_array(group, COHORT_GROUP_PARAMS, 0, device);

  ok(cohort_ndarray_read(array, weights, kWeights * sizeof(float)));
  cohort_ndarray_free(array);
}

static void the_same_run_gives_the_same_bits(void **state) {
  static float first[kWeights], found[kWeights];
  int kind, run;

  (void)state;
  for (kind = 0; kind < 8; ++kind) {
    const size_t num_contexts = kind & 1 ? 3 : 2, bucket_bytes = kind & 2 ? 1 : 0;
    const cohort_update_mode mode = kind & 4 ? COHORT_UPDATE_PER_DEVICE : COHORT_UPDATE_ON_STORE;

    for (run = 0; run < 3; ++run) {
      cohort_group *const group = trained(num_contexts, bucket_bytes, mode, 5, NULL);

      read_weights(group, (size_t)run % num_contexts, run ? found : first);
      if (run) assert_memory_equal(found, first, sizeof(first));
      cohort_group_free(group);
    }
  }
}

static void a_sum_is_off_by_what_is_promised(void **state) {
  static float gradients[3 * kWeights], sums[kWeights];
  const int rounds_partial_sums = test_contexts()[0].device_type != COHORT_DEVICE_CPU;
  size_t num_contexts, i, d;

  (void)state;
  for (num_contexts = 2; num_contexts <= 3; ++num_contexts) {
    cohort_group *const group = trained(num_contexts, 0, COHORT_UPDATE_PER_DEVICE, 2, gradients);
    cohort_ndarray *const array = device_array(group, COHORT_GROUP_GRADS, 0, 1);
    size_t num_off = 0;

    ok(cohort_ndarray_read(array, sums, sizeof(sums)));
    for (i = 0; i < kWeights; ++i) {
      double sum = 0, absolute = 0;
      uint32_t bits;

      for (d = 0; d < num_contexts; ++d) {
        sum += gradients[d * kWeights + i];
        absolute += fabs(gradients[d * kWeights + i]);
      }
      assert_true(fabs(sums[i] - sum) <= (rounds_partial_sums && num_contexts > 2 ? 2 : 1) * absolute / 127);
      num_off += fabs(sums[i] - sum) > 1e-4 * fabs(sum);
      memcpy(&bits, &sums[i], sizeof(bits));
      assert_int_equal(bits & 0xffff, 0);
    }
    assert_true(num_off > kWeights / 2); /* otherwise nothing was rounded */
    cohort_ndarray_free(array);
    cohort_group_free(group);
  }
}

static void other_types_are_refused(void **state) {
  const cohort_group_options half = summed_in(COHORT_DTYPE_FLOAT16);
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_symbol *symbol = regression("1");
  cohort_descs *data = desc("data", SHAPE(4, 2), "NC"), *label = desc("label", SHAPE(4, 1), "NC");
  cohort_group *group = NULL;
  cohort_manager *manager = NULL;

  (void)state;
  fails(try_bind(&group, regression("1"), 2, desc("data", SHAPE(4, 2), "NC"), desc("label", SHAPE(4, 1), "NC"),
                 NAMES("fc_weight"), &half),
        COHORT_ERROR_INVALID_ARGUMENT, "gradient_sum_dtype");
  options.gradient_sum_dtype = COHORT_DTYPE_NONE;
  fails(cohort_manager_create(symbol, test_contexts(), 2, 4, data, label, NULL, 0, &options, &manager),
        COHORT_ERROR_INVALID_ARGUMENT, "gradient_sum_dtype");
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_symbol_free(symbol);
}

/* A manager passes the option on to its groups. */
static void managers_have_it_too(void **state) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_symbol *symbol = regression("1");
  cohort_descs *data = desc("data", SHAPE(2, 2), "NC"), *label = desc("label", SHAPE(2, 1), "NC");
  cohort_ndarray *rows = floats(SHAPE(2, 2), FLOATS(kBetween, 0, kBetween, 0));
  cohort_ndarray *labels = floats(SHAPE(2, 1), FLOATS(kBetween - 1, kBetween - 1));
  cohort_arrays *params = named("fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  cohort_optimizer *optimizer = plain_sgd();
  cohort_manager *manager = NULL;
  cohort_ndarray *weight = NULL;
  int bfloat16;

  (void)state;
  for (bfloat16 = 0; bfloat16 < 2; ++bfloat16) {
    if (bfloat16) options.gradient_sum_dtype = COHORT_DTYPE_BFLOAT16;
    ok(cohort_manager_create(symbol, test_contexts(), 2, 2, data, label, NULL, 0, &options, &manager));
    ok(cohort_manager_set_params(manager, params, NULL));
    ok(cohort_manager_load_data_batch(manager, &rows, 1, &labels, 1, NULL, NULL, NULL));
    ok(cohort_manager_forward(manager, 1));
    ok(cohort_manager_backward(manager));
    ok(cohort_manager_update(manager, optimizer, COHORT_UPDATE_ON_STORE));
    ok(cohort_manager_array(manager, COHORT_GROUP_PARAMS, 0, 1, &weight));
    assert_true(first_of(weight) == 1 - 2 * (bfloat16 ? kAbove : kBetween));
    cohort_manager_free(manager);
  }
  cohort_optimizer_free(optimizer);
  cohort_arrays_free(params);
  cohort_ndarray_free(rows);
  cohort_ndarray_free(labels);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_symbol_free(symbol);
}

/* Each sum uses complete gradients, although the layouts chosen on the devices let them finish in different orders.
 * Slices of different lengths lead to different layouts: with one row the weight's gradient may be ready before the
 * bias's, with two after it. */
static cohort_group *trained_unevenly(const char *num_filter, const double *workload, size_t bucket_bytes) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_optimizer *optimizer = plain_sgd();
  cohort_symbol *net =
      node("Deconvolution", "up", ATTRS("kernel", "(5, 5, 5)", "num_filter", num_filter, "no_bias", "False"),
           INPUTS(variable("data")));
  cohort_group *group;
  cohort_initializer *init = NULL;
  cohort_arrays *params = NULL;
  const char *const key = "magnitude", *const value = "0.1";
  int step;

  net = node("FullyConnected", "fc", ATTRS("num_hidden", "256"), INPUTS(net));
  net = node("Activation", "bend", ATTRS("act_type", "tanh"), INPUTS(net));
  net = node("FullyConnected", "fc1", ATTRS("num_hidden", "256"), INPUTS(net));
  net = node("FullyConnected", "last", ATTRS("num_hidden", "1"), INPUTS(net));
  net = node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(net, variable("label")));
  options.workload = workload;
  options.num_workloads = 2;
  options.gradient_bucket_bytes = bucket_bytes;
  group = bind_for_training(
      net, 2, desc("data", SHAPE(3, 16, 1, 1, 1), NULL), desc("label", SHAPE(3, 1), NULL),
      NAMES("up_weight", "up_bias", "fc_weight", "fc_bias", "fc1_weight", "fc1_bias", "last_weight", "last_bias"),
      &options);
  ok(cohort_initializer_create("xavier", &key, &value, 1, 7, &init));
  ok(cohort_group_arrays(group, COHORT_GROUP_PARAMS, 0, &params));
  ok(cohort_initializer_apply(init, NULL, params));
  ok(cohort_group_set_params(group, params, NULL, 0));
  cohort_arrays_free(params);
  cohort_initializer_free(init);
  ok(cohort_optimizer_set(optimizer, "learning_rate", 0.01));
  for (step = 0; step < 8; ++step) {
    forward(group, counted(SHAPE(3, 16, 1, 1, 1), 0.1f * (float)(step + 1)), counted(SHAPE(3, 1), 0.5f), 1);
    backward(group, NULL);
    ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  }
  cohort_optimizer_free(optimizer);
  return group;
}

static void devices_may_finish_gradients_in_several_orders(void **state) {
  static float expected[16 * 40 * 125], found[16 * 40 * 125];
  const char *const filters[] = {"8", "24", "40"};
  const size_t num_filters[] = {8, 24, 40};
  const double workloads[2][2] = {{1, 2}, {2, 1}};
  size_t k;

  (void)state;
  only_on_cpus(); /* only their kernels choose layouts */
  for (k = 0; k < 2 * COUNT(filters); ++k) {
    const size_t bytes = 16 * num_filters[k / 2] * 125 * sizeof(float);
    size_t one_bucket;

    for (one_bucket = 0; one_bucket < 2; ++one_bucket) {
      cohort_group *const group = trained_unevenly(filters[k / 2], workloads[k % 2], one_bucket ? (size_t)1 << 30 : 1);
      cohort_ndarray *const weight = device_array(group, COHORT_GROUP_PARAMS, 0, 1);

      ok(cohort_ndarray_read(weight, one_bucket ? expected : found, bytes));
      cohort_ndarray_free(weight);
      cohort_group_free(group);
    }
    assert_true(found[0] == found[0] && found[0] != 0);
    assert_memory_equal(found, expected, bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(float32_is_the_default),
      TEST(gradients_are_rounded_and_then_their_sum),
      TEST(a_sum_in_the_gradients_place_is_float32_again),
      TEST(gradients_that_are_not_summed_are_not_rounded),
      TEST(the_same_run_gives_the_same_bits),
      TEST(devices_may_finish_gradients_in_several_orders),
      TEST(a_sum_is_off_by_what_is_promised),
      TEST(other_types_are_refused),
      TEST(managers_have_it_too),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
