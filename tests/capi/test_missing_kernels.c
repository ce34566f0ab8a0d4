/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel a node gets, and the error where there is none: operator, node, types, and why each kernel of the
 * operator was refused. */
#include "support/executor_tests.h"

/* FullyConnected 'fc' bound to data and weight of one type. */
static cohort_error *try_bind_of(int32_t dtype, cohort_executor **out_executor) {
  cohort_symbol *fc = linear("2");
  cohort_ndarray *args[2];
  cohort_error *error;

  ok(cohort_ndarray_zeros(SHAPE(4, 3), dtype, NULL, &args[0]));
  ok(cohort_ndarray_zeros(SHAPE(2, 3), dtype, NULL, &args[1]));
  error = cohort_executor_bind(fc, NULL, args, 2, NULL, NULL, NULL, 0, NULL, out_executor);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);
  cohort_symbol_free(fc);
  return error;
}

static void a_type_without_kernel_is_refused_at_bind(void **state) {
  cohort_executor *executor = NULL;
  cohort_error *error = try_bind_of(COHORT_DTYPE_INT32, &executor);

  (void)state;
  assert_non_null(error);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_UNSUPPORTED);
  assert_string_equal(cohort_error_subject(error), "fc");
  assert_string_equal(
      cohort_error_message(error),
      "FullyConnected 'fc': operator FullyConnected has no kernel on cpu(0) for (int32, int32) -> "
      "(int32): onednn: expected float32 or bfloat16 for input 0, found int32; float32: expected float16 or bfloat16 "
      "for input 0, found int32; plain: expected float32 or float64 for input 0, found int32");
  cohort_error_free(error);
  assert_null(executor);
}

static void a_type_without_kernel_is_refused_by_invoke(void **state) {
  const char *key = "act_type", *relu = "relu";
  cohort_ndarray *integers = NULL;
  cohort_arrays *outputs = NULL;
  cohort_error *error;

  (void)state;
  ok(cohort_ndarray_zeros(SHAPE(4, 3), COHORT_DTYPE_INT32, NULL, &integers));
  error = cohort_operator_invoke("Activation", &key, &relu, 1, &integers, 1, NULL, 0, NULL, &outputs);
  assert_non_null(error);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_UNSUPPORTED);
  assert_string_equal(
      cohort_error_message(error),
      "Activation 'Activation': operator Activation has no kernel on cpu(0) for (int32) -> (int32): "
      "onednn: expected float32 or bfloat16 for input 0, found int32; plain: expected float32, float64, float16 or "
      "bfloat16 for input 0, found int32");
  cohort_error_free(error);
  assert_null(outputs);
  cohort_ndarray_free(integers);
}

typedef struct traced {
  int fast, converted;
} traced;

static void note_kernel(int32_t level, const char *message, void *user_data) {
  traced *found = user_data;

  (void)level;
  if (!strstr(message, "plan: forward FullyConnected 'fc'")) return;
  found->fast += strstr(message, "] by onednn") != NULL && strstr(message, "refused") == NULL;
  found->converted +=
      strstr(message, "] by float32; refused by onednn: expected float32 or bfloat16 for input 0, found float16") !=
      NULL;
}

static void a_traced_plan_says_why_kernels_were_refused(void **state) {
  traced found = {0, 0};
  cohort_executor *executor = NULL;

  (void)state;
  assert_int_equal(setenv("COHORT_TRACE", "plan", 1), 0);
  ok(cohort_set_log(COHORT_LOG_DEBUG, note_kernel, &found));
  ok(try_bind_of(COHORT_DTYPE_FLOAT32, &executor));
  cohort_executor_free(executor);
  assert_int_equal(found.fast, 1);
  assert_int_equal(found.converted, 0);
  ok(try_bind_of(COHORT_DTYPE_FLOAT16, &executor));
  cohort_executor_free(executor);
  assert_int_equal(found.fast, 1);
  assert_int_equal(found.converted, 1);
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  assert_int_equal(unsetenv("COHORT_TRACE"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_type_without_kernel_is_refused_at_bind),
      TEST(a_type_without_kernel_is_refused_by_invoke),
      TEST(a_traced_plan_says_why_kernels_were_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
