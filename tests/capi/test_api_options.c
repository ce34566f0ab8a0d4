/* SPDX-License-Identifier: Apache-2.0 */
/* Option structs grow at their end: the struct of an older or newer caller is read as it was meant, or refused. */
#include <stdlib.h>

#include "support/boundary.h"

/* One call that takes an option struct, with all its other arguments. */
typedef struct taker {
  const char *name;
  size_t size;
  void (*init)(void *options, size_t struct_size);
  cohort_error *(*call)(const void *options);
} taker;

static void init_group(void *options, size_t size) { cohort_group_options_init(options, size); }
static void init_executor(void *options, size_t size) { cohort_executor_options_init(options, size); }
static void init_reshape(void *options, size_t size) { cohort_reshape_options_init(options, size); }
static void init_invoke(void *options, size_t size) { cohort_invoke_options_init(options, size); }

static const int64_t two_by_three[] = {2, 3};

static cohort_error *call_group(const void *options) {
  static const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};
  cohort_symbol *symbol = small_network();
  cohort_descs *data = one_desc("data", two_by_three, 2);
  cohort_group *group = NULL;
  cohort_error *error = cohort_group_create(symbol, &cpu0, 1, data, NULL, NULL, 0, 0, options, &group);

  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_group_free(group);
  return error;
}

static cohort_error *call_executor(const void *options) {
  cohort_symbol *symbol = small_network();
  cohort_descs *known = one_desc("data", two_by_three, 2);
  cohort_executor *executor = NULL;
  cohort_error *error = cohort_executor_simple_bind(symbol, NULL, known, options, &executor);

  cohort_symbol_free(symbol);
  cohort_descs_free(known);
  cohort_executor_free(executor);
  return error;
}

static cohort_error *call_reshape(const void *options) {
  cohort_symbol *symbol = small_network();
  cohort_descs *known = one_desc("data", two_by_three, 2);
  cohort_executor *executor = NULL, *reshaped = NULL;
  cohort_error *error;

  ok(cohort_executor_simple_bind(symbol, NULL, known, NULL, &executor));
  error = cohort_executor_reshape(executor, known, options, &reshaped);
  cohort_symbol_free(symbol);
  cohort_descs_free(known);
  cohort_executor_free(executor);
  cohort_executor_free(reshaped);
  return error;
}

static cohort_error *call_invoke(const void *options) {
  const int64_t length = 2;
  const char *const key = "act_type", *const value = "relu";
  cohort_ndarray *array = floats((const float[]){-1, 1}, &length, 1);
  cohort_arrays *outputs = NULL;
  cohort_error *error = cohort_operator_invoke("Activation", &key, &value, 1, &array, 1, NULL, 0, options, &outputs);

  cohort_ndarray_free(array);
  cohort_arrays_free(outputs);
  return error;
}

static const taker takers[] = {
    {"group", sizeof(cohort_group_options), init_group, call_group},
    {"executor", sizeof(cohort_executor_options), init_executor, call_executor},
    {"reshape", sizeof(cohort_reshape_options), init_reshape, call_reshape},
    {"invoke", sizeof(cohort_invoke_options), init_invoke, call_invoke},
};

/* The init functions give zeros and the size, and write nothing beyond it. */
static void init_functions_give_defaults(void **state) {
  unsigned char bytes[512];
  size_t i, k;

  (void)state;
  for (i = 0; i < NUM_OF(takers); ++i) {
    size_t size = 0;

    memset(bytes, 0xab, sizeof(bytes));
    takers[i].init(bytes, takers[i].size);
    memcpy(&size, bytes, sizeof(size));
    assert_int_equal(size, takers[i].size);
    for (k = sizeof(size); k < sizeof(bytes); ++k) assert_int_equal(bytes[k], k < takers[i].size ? 0 : 0xab);
    takers[i].init(NULL, takers[i].size);
    memset(bytes, 0xab, sizeof(bytes));
    takers[i].init(bytes, 0);
    assert_int_equal(bytes[0], 0xab);
  }
}

/* The macros give what the functions give. */
static void macros_give_defaults(void **state) {
  const cohort_group_options group = COHORT_GROUP_OPTIONS_INIT;
  const cohort_executor_options executor = COHORT_EXECUTOR_OPTIONS_INIT;
  const cohort_reshape_options reshape = COHORT_RESHAPE_OPTIONS_INIT;
  const cohort_invoke_options invoke = COHORT_INVOKE_OPTIONS_INIT;
  const cohort_memory_info memory = COHORT_MEMORY_INFO_INIT;
  const void *const made[] = {&group, &executor, &reshape, &invoke};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(takers); ++i) {
    ok(takers[i].call(made[i]));
    assert_int_equal(*(const size_t *)made[i], takers[i].size);
  }
  assert_int_equal(memory.struct_size, sizeof(memory));
}

/* NULL stands for the defaults. */
static void null_is_all_defaults(void **state) {
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(takers); ++i) ok(takers[i].call(NULL));
}

/* An uninitialised struct is refused. */
static void uninitialised_structs_are_refused(void **state) {
  static const size_t bad[] = {0, 1, sizeof(size_t) - 1, (size_t)1 << 40, (size_t)-1};
  unsigned char bytes[512];
  size_t i, k;

  (void)state;
  for (i = 0; i < NUM_OF(takers); ++i) {
    for (k = 0; k < NUM_OF(bad); ++k) {
      takers[i].init(bytes, takers[i].size);
      memcpy(bytes, &bad[k], sizeof(bad[k]));
      fails(takers[i].call(bytes), COHORT_ERROR_INVALID_ARGUMENT, "struct_size");
    }
  }
}

/* No byte beyond its size is read of a shorter struct, which an older caller passes. */
static void shorter_structs_are_read_as_far_as_they_go(void **state) {
  size_t i, size;

  (void)state;
  for (i = 0; i < NUM_OF(takers); ++i) {
    for (size = sizeof(size_t); size < takers[i].size; size += sizeof(size_t)) {
      void *exact = malloc(size); /* AddressSanitizer detects a read beyond it */

      assert_non_null(exact);
      takers[i].init(exact, size);
      ok(takers[i].call(exact));
      free(exact);
    }
  }
}

/* A longer struct, which a newer caller passes, is accepted as long as its unknown bytes are zero. */
static void longer_structs_must_be_zero_at_the_end(void **state) {
  unsigned char bytes[512];
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(takers); ++i) {
    takers[i].init(bytes, takers[i].size + 24);
    ok(takers[i].call(bytes));
    bytes[takers[i].size + 23] = 1;
    fails(takers[i].call(bytes), COHORT_ERROR_INVALID_ARGUMENT, "does not know");
  }
}

/* An output struct is filled only as far as the caller's size. */
static void memory_info_is_filled_as_far_as_it_goes(void **state) {
  cohort_group *group = small_group(1, 2);
  cohort_memory_info whole = COHORT_MEMORY_INFO_INIT, part;

  (void)state;
  ok(cohort_group_memory(group, 0, &whole));
  /* data 2x3, weight 2x3, bias 2, label 2; gradients of weight and bias; output 2x2 */
  assert_int_equal(whole.argument_bytes, 4 * (6 + 6 + 2 + 2));
  assert_int_equal(whole.gradient_bytes, 4 * (6 + 2));
  assert_int_equal(whole.output_bytes, 4 * 4);
  memset(&part, 0xab, sizeof(part));
  part.struct_size = offsetof(cohort_memory_info, intermediate_bytes);
  ok(cohort_group_memory(group, 0, &part));
  assert_int_equal(part.struct_size, offsetof(cohort_memory_info, intermediate_bytes));
  assert_int_equal(part.planned_bytes, whole.planned_bytes);
  assert_int_equal(((unsigned char *)&part.intermediate_bytes)[0], 0xab);
  part.struct_size = 3;
  fails(cohort_group_memory(group, 0, &part), COHORT_ERROR_INVALID_ARGUMENT, "struct_size");
  fails(cohort_group_memory(group, 0, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_info");
  cohort_group_free(group);
}

/* Counts and pointers that contradict each other are refused, with the name of each. */
static void options_that_contradict_are_refused(void **state) {
  static const double workload[] = {1, 2};
  static const int64_t slices[] = {0, 1, 1, 2};
  static const char *const words[] = {"write", "null"}, *const names[] = {"fc_weight", "fc_bias"};
  cohort_group_options group = COHORT_GROUP_OPTIONS_INIT;
  cohort_executor_options executor = COHORT_EXECUTOR_OPTIONS_INIT;

  (void)state;
#define REFUSED(options, call, field, value, code, part) \
  do {                                                   \
    (options).field = (value);                           \
    fails(call(&(options)), (code), (part));             \
  } while (0)
  group.workload = workload;
  REFUSED(group, call_group, num_workloads, 2, COHORT_ERROR_INVALID_ARGUMENT, "workload: expected one number");
  group.num_workloads = 0; /* DIF-02: an empty list means none */
  ok(call_group(&group));
  group.workload = NULL;
  REFUSED(group, call_group, num_workloads, 1, COHORT_ERROR_INVALID_ARGUMENT, "workload");
  group.num_workloads = 0;
  group.slices = slices;
  REFUSED(group, call_group, num_slices, 2, COHORT_ERROR_INVALID_ARGUMENT, "slices: expected one");
  group.num_slices = 0;
  ok(call_group(&group));
  group.slices = NULL;
  REFUSED(group, call_group, rounding, 3, COHORT_ERROR_INVALID_ARGUMENT, "rounding");
  group.rounding = 0;
  REFUSED(group, call_group, inputs_need_grad, 2, COHORT_ERROR_INVALID_ARGUMENT, "inputs_need_grad");
  group.inputs_need_grad = 0;
  REFUSED(group, call_group, num_threads, -1, COHORT_ERROR_INVALID_ARGUMENT, "num_threads");
  group.num_threads = 0;
  REFUSED(group, call_group, grad_req, "sometimes", COHORT_ERROR_INVALID_ARGUMENT, "sometimes");
  group.grad_req_list = words;
  group.num_grad_reqs = 2;
  REFUSED(group, call_group, grad_req, "write", COHORT_ERROR_INVALID_ARGUMENT, "both");
  group.grad_req = NULL;
  fails(call_group(&group), COHORT_ERROR_INVALID_ARGUMENT, "grad_req");
  group.grad_req_names = names;
  ok(call_group(&group));
  group.num_state_names = 1;
  fails(call_group(&group), COHORT_ERROR_INVALID_ARGUMENT, "state_names");

  executor.grad_req_list = words;
  REFUSED(executor, call_executor, num_grad_reqs, 0, COHORT_ERROR_INVALID_ARGUMENT, "expected 4");
  REFUSED(executor, call_executor, num_grad_reqs, 2, COHORT_ERROR_INVALID_ARGUMENT, "expected 4");
  executor.grad_req_names = names;
  ok(call_executor(&executor));
  REFUSED(executor, call_executor, grad_req, "add", COHORT_ERROR_INVALID_ARGUMENT, "both");
  executor.grad_req = NULL;
  REFUSED(executor, call_executor, num_storage_types, 1, COHORT_ERROR_INVALID_ARGUMENT, "storage_names");
  executor.storage_names = names;
  executor.storage_types = &(const int32_t){COHORT_STORAGE_CSR};
  fails(call_executor(&executor), COHORT_ERROR_UNSUPPORTED, "fc_weight");
#undef REFUSED
}

/* A handle that is no calibration is refused for every compute_dtype. */
static void invalid_calibrations_are_refused(void **state) {
  static const cohort_dtype types[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_BFLOAT16, COHORT_DTYPE_INT8};
  cohort_group_options group = COHORT_GROUP_OPTIONS_INIT;
  cohort_executor_options executor = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *other = small_network();
  cohort_calibration *calibration = NULL;
  size_t i;

  (void)state;
  ok(cohort_calibration_create(COHORT_CALIBRATION_MIN_MAX, &calibration));
  for (i = 0; i < NUM_OF(types); ++i) {
    executor.compute_dtype = group.compute_dtype = types[i];
    executor.calibration = group.calibration = (const cohort_calibration *)(const void *)other;
    fails(call_executor(&executor), COHORT_ERROR_INVALID_ARGUMENT, "calibration");
    fails(call_group(&group), COHORT_ERROR_INVALID_ARGUMENT, "calibration");
    executor.calibration = group.calibration = calibration;
    if (types[i] == COHORT_DTYPE_INT8) continue;
    ok(call_executor(&executor));
    ok(call_group(&group));
  }
  cohort_calibration_free(calibration);
  executor.compute_dtype = COHORT_DTYPE_FLOAT32; /* with a handle that is freed */
  fails(call_executor(&executor), COHORT_ERROR_INVALID_ARGUMENT, "calibration");
  cohort_symbol_free(other);
}

/* A manager trains. */
static void managers_do_not_compute_in_bytes(void **state) {
  static const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_symbol *symbol = small_network();
  cohort_descs *data = one_desc("data", two_by_three, 2);
  cohort_manager *manager = NULL;

  (void)state;
  options.compute_dtype = COHORT_DTYPE_INT8;
  fails(cohort_manager_create(symbol, &cpu0, 1, 2, data, NULL, NULL, 0, &options, &manager), COHORT_ERROR_UNSUPPORTED,
        "compute_dtype int8: a manager trains");
  assert_null(manager);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(init_functions_give_defaults),
      TEST(macros_give_defaults),
      TEST(null_is_all_defaults),
      TEST(uninitialised_structs_are_refused),
      TEST(shorter_structs_are_read_as_far_as_they_go),
      TEST(longer_structs_must_be_zero_at_the_end),
      TEST(memory_info_is_filled_as_far_as_it_goes),
      TEST(options_that_contradict_are_refused),
      TEST(invalid_calibrations_are_refused),
      TEST(managers_do_not_compute_in_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
