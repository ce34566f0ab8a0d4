/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets share more than parameters: memory, outputs and states (MGR-05, MGR-13, SHR-07, STA-03). */
#include <math.h>

#include "support/group_tests.h"

enum { BATCH = 64, WIDTH = 256 };

static const char *const params[] = {"in_weight", "wide_weight", "out_weight"};
static const char *const keys[] = {"4", "16", "64"};

static cohort_symbol *dense(const char *name, const char *num_hidden, cohort_symbol *input) {
  return node("FullyConnected", name, ATTRS("num_hidden", num_hidden, "no_bias", "1", "flatten", "0"), INPUTS(input));
}

/* A sequence of numbers through layers whose weights (see below) reproduce the number itself. */
static cohort_symbol *identity_network(void) {
  cohort_symbol *net = node("expand_dims", "column", ATTRS("axis", "2"), INPUTS(variable("data")));

  net = dense("in", "256", net);
  net = dense("wide", "256", net);
  return node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(dense("out", "1", net), variable("label")));
}

static void set_weight(cohort_manager *manager, const char *name, const int64_t *shape, int32_t num_axes, float value) {
  cohort_ndarray *array = NULL;
  cohort_arrays *arrays;

  ok(cohort_ndarray_zeros(shape, num_axes, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_fill(array, value));
  arrays = named(name, array);
  ok(cohort_manager_set_params(manager, arrays, NULL));
  cohort_arrays_free(arrays);
}

static void ignore(int32_t level, const char *message, void *user_data) {
  (void)level;
  (void)message;
  (void)user_data;
}

static cohort_manager *identity_manager(const char *default_key, const double *workload) {
  const int64_t length = atoi(default_key);
  cohort_descs *data = desc("data", SHAPE(BATCH, length), NULL), *label = desc("label", SHAPE(BATCH, length, 1), NULL);
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_symbol *symbols[3] = {identity_network(), identity_network(), identity_network()};
  cohort_manager *manager = NULL;
  size_t i;

  options.workload = workload;
  options.num_workloads = workload ? 2 : 0;
  options.default_bucket_key = default_key;
  options.bucket_keys = keys;
  options.bucket_symbols = symbols;
  options.num_buckets = 3;
  options.num_threads = 1;
  options.log = ignore;
  ok(cohort_manager_create(symbols[0], test_contexts(), 2, BATCH, data, label, params, 3, &options, &manager));
  for (i = 0; i < 3; ++i) cohort_symbol_free(symbols[i]);
  cohort_descs_free(data);
  cohort_descs_free(label);
  set_weight(manager, "in_weight", SHAPE(WIDTH, 1), 1);
  set_weight(manager, "wide_weight", SHAPE(WIDTH, WIDTH), 1.0f / WIDTH);
  set_weight(manager, "out_weight", SHAPE(1, WIDTH), 1.0f / WIDTH);
  return manager;
}

/* Loads sequences of 0, 1, 2, ... times scale. */
static void load(cohort_manager *manager, const char *key, float scale) {
  const int64_t length = atoi(key);
  cohort_ndarray *data = counted(SHAPE(BATCH, length), scale), *label = counted(SHAPE(BATCH, length, 1), 0);
  cohort_descs *data_descs = desc("data", SHAPE(1, length), NULL),
               *label_descs = desc("label", SHAPE(1, length, 1), NULL);

  ok(cohort_manager_load_data_batch(manager, &data, 1, &label, 1, key, data_descs, label_descs));
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_descs_free(data_descs);
  cohort_descs_free(label_descs);
}

/* Runs training and testing, so that all plans of a bucket are made. */
static void use_bucket(cohort_manager *manager, const char *key) {
  load(manager, key, 1);
  ok(cohort_manager_forward(manager, 0));
  ok(cohort_manager_forward(manager, 1));
  ok(cohort_manager_backward(manager));
}

static cohort_memory_info memory_of(const cohort_manager *manager) {
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;

  ok(cohort_manager_memory(manager, &info));
  return info;
}

/* MGR-13: if the largest bucket comes first, the others allocate nothing, outputs included. */
static void smaller_buckets_take_no_memory(void **state) {
  cohort_manager *manager = identity_manager("64", NULL);
  cohort_memory_info alone, device = COHORT_MEMORY_INFO_INIT, all;
  cohort_group *group = NULL;

  (void)state;
  use_bucket(manager, "64");
  alone = memory_of(manager);
  ok(cohort_manager_main_group(manager, &group));
  ok(cohort_group_memory(group, 1, &device));
  assert_true(device.planned_bytes > 0);
  /* On the CPU, inference keeps weights reordered for its matrix products; they take as much memory as the weights. */
  assert_true(alone.planned_bytes >= 2 * device.planned_bytes + (test_contexts()[0].device_type == COHORT_DEVICE_CPU));
  assert_int_equal(alone.intermediate_bytes, 2 * device.intermediate_bytes);
  assert_int_equal(alone.value_bytes, 2 * device.value_bytes);
  assert_int_equal(alone.argument_bytes, 2 * device.argument_bytes);
  assert_int_equal(alone.gradient_bytes, 2 * device.gradient_bytes);
  assert_int_equal(alone.output_bytes, BATCH * 64 * sizeof(float));
  use_bucket(manager, "4");
  use_bucket(manager, "16");
  all = memory_of(manager);
  assert_memory_equal(&all, &alone, sizeof(all));
  cohort_group_free(group);
  cohort_manager_free(manager);
}

static void tests_as(cohort_manager *manager, const char *key, float factor) {
  const int num = BATCH * atoi(key);
  float found[BATCH * 64];
  cohort_ndarray *output = NULL;
  int i;

  load(manager, key, 1);
  ok(cohort_manager_forward(manager, 0));
  ok(cohort_manager_merged(manager, COHORT_GROUP_OUTPUTS, 0, &output));
  ok(cohort_ndarray_read(output, found, (size_t)num * sizeof(float)));
  for (i = 0; i < num; ++i) assert_true(fabsf(found[i] - factor * (float)i) <= 1e-4f * factor * (float)i);
  cohort_ndarray_free(output);
}

/* Values that inference derives from weights are computed once for all buckets, and again when the weights change. */
static void weights_set_later_are_seen_in_all_buckets(void **state) {
  cohort_manager *manager = identity_manager("64", NULL);
  const char *const order[] = {"16", "64", "4", "64", "16"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(order); ++i) tests_as(manager, order[i], 1);
  for (i = 0; i < COUNT(order); ++i) {
    set_weight(manager, "wide_weight", SHAPE(WIDTH, WIDTH), (float)(i + 2) / WIDTH);
    tests_as(manager, order[i], (float)(i + 2));
    tests_as(manager, order[(i + 1) % COUNT(order)], (float)(i + 2));
  }
  cohort_manager_free(manager);
}

/* SHR-04: buckets that grow allocate new arguments and outputs; earlier buckets keep theirs. */
static void larger_buckets_take_more(void **state) {
  cohort_manager *manager = identity_manager("4", NULL);
  cohort_memory_info small, both;
  const size_t more = BATCH * 64 * sizeof(float);

  (void)state;
  small = memory_of(manager);
  use_bucket(manager, "64");
  both = memory_of(manager);
  assert_int_equal(both.output_bytes, small.output_bytes + more);
  assert_int_equal(both.argument_bytes, small.argument_bytes + 2 * more);
  assert_int_equal(both.gradient_bytes, small.gradient_bytes);
  assert_true(both.planned_bytes > small.planned_bytes);
  assert_true(both.intermediate_bytes > small.intermediate_bytes);
  cohort_manager_free(manager);
}

/* SHR-07: outputs of all buckets share memory. The first device has little to do, and must not write the outputs of the
 * next bucket while the second device has still to write its own. */
static void the_next_bucket_waits_for_all_devices(void **state) {
  const double workload[] = {1, 31};
  cohort_manager *manager = identity_manager("64", workload);
  int round;

  (void)state;
  for (round = 0; round < 5; ++round) {
    load(manager, "16", -1);
    ok(cohort_manager_forward(manager, 0));
    tests_as(manager, "64", 1);
  }
  cohort_manager_free(manager);
}

/* The sum of a sequence plus a state. */
static cohort_symbol *running_sum(void) {
  cohort_symbol *total = node("sum", "total", ATTRS("axis", "1", "keepdims", "1"), INPUTS(variable("data")));
  cohort_symbol *sum = node("elemwise_add", "sum", NO_ATTRS, INPUTS(total, variable("memory")));

  return node("MakeLoss", "loss", NO_ATTRS, INPUTS(sum));
}

/* STA-03, STA-04: states are carried from bucket to bucket, and are one array for all of them. */
static void states_are_carried_over_buckets(void **state) {
  const char *const states[] = {"memory"};
  const double zero = 0;
  cohort_descs *data = desc("data", SHAPE(4, 3), NULL), *short_data = desc("data", SHAPE(4, 2), NULL);
  cohort_symbol *symbols[2] = {running_sum(), running_sum()};
  const char *const names[] = {"3", "2"};
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_manager *manager = NULL;
  cohort_ndarray *outputs[2] = {NULL, NULL}, *output = NULL, *batch;
  size_t d;

  (void)state;
  options.default_bucket_key = "3";
  options.bucket_keys = names;
  options.bucket_symbols = symbols;
  options.num_buckets = 2;
  options.state_names = states;
  options.num_state_names = 1;
  ok(cohort_manager_create(symbols[0], test_contexts(), 2, 4, data, NULL, NULL, 0, &options, &manager));
  fails(cohort_manager_set_states(manager, NULL, 0, 0, &zero), COHORT_ERROR_STATE, "no batch");
  batch = counted(SHAPE(4, 3), 1);
  ok(cohort_manager_load_data_batch(manager, &batch, 1, NULL, 0, "3", data, NULL));
  ok(cohort_manager_forward(manager, 1));
  for (d = 0; d < 2; ++d) ok(cohort_manager_array(manager, COHORT_GROUP_OUTPUTS, 0, d, &outputs[d]));
  cohort_ndarray_free(batch);
  batch = counted(SHAPE(4, 2), 10);
  ok(cohort_manager_load_data_batch(manager, &batch, 1, NULL, 0, "2", short_data, NULL));
  fails(cohort_manager_set_states(manager, outputs, 1, 1, NULL), COHORT_ERROR_INVALID_ARGUMENT, "num_devices");
  ok(cohort_manager_set_states(manager, outputs, 1, 2, NULL));
  ok(cohort_manager_forward(manager, 1));
  ok(cohort_manager_merged(manager, COHORT_GROUP_OUTPUTS, 0, &output));
  holds_free(output, 3 + 10, 12 + 50, 21 + 90, 30 + 130);
  ok(cohort_manager_array(manager, COHORT_GROUP_STATES, 0, 1, &output));
  holds_free(output, 21, 30);
  ok(cohort_manager_set_states(manager, NULL, 0, 0, &zero));
  ok(cohort_manager_forward(manager, 0));
  ok(cohort_manager_merged(manager, COHORT_GROUP_OUTPUTS, 0, &output));
  holds_free(output, 10, 50, 90, 130);
  for (d = 0; d < 2; ++d) cohort_ndarray_free(outputs[d]);
  for (d = 0; d < 2; ++d) cohort_symbol_free(symbols[d]);
  cohort_ndarray_free(batch);
  cohort_descs_free(data);
  cohort_descs_free(short_data);
  cohort_manager_free(manager);
}

/* A state is an argument of every bucket. */
static void wrong_states_are_refused(void **state) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  const char *const states[] = {"no_such"};
  cohort_descs *data = desc("data", SHAPE(4, 3), NULL);
  cohort_symbol *symbol = running_sum();
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
  cohort_manager *manager = NULL;

  (void)state;
  options.num_state_names = 1;
  fails(cohort_manager_create(symbol, test_contexts(), 2, 4, data, NULL, NULL, 0, &options, &manager),
        COHORT_ERROR_INVALID_ARGUMENT, "state_names");
  options.state_names = states;
  fails(cohort_manager_create(symbol, test_contexts(), 2, 4, data, NULL, NULL, 0, &options, &manager),
        COHORT_ERROR_NAME, "no_such");
  ok(cohort_manager_create(symbol, test_contexts(), 2, 4, data, NULL, NULL, 0, NULL, &manager));
  fails(cohort_manager_memory(NULL, &info), COHORT_ERROR_INVALID_ARGUMENT, "manager");
  fails(cohort_manager_memory(manager, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_info");
  cohort_manager_free(manager);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(smaller_buckets_take_no_memory),        TEST(larger_buckets_take_more),
      TEST(the_next_bucket_waits_for_all_devices), TEST(weights_set_later_are_seen_in_all_buckets),
      TEST(states_are_carried_over_buckets),       TEST(wrong_states_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
