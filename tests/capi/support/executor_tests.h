/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of executors over the C ABI, used beside those for groups. Functions that take symbols or
 * descriptors free them. */
#ifndef COHORT_TESTS_EXECUTOR_TESTS_H
#define COHORT_TESTS_EXECUTOR_TESTS_H

#include "support/group_tests.h"

static inline cohort_error *try_simple_bind(cohort_executor **out_executor, cohort_symbol *symbol, cohort_descs *known,
                                            const cohort_executor_options *options) {
  cohort_error *error = cohort_executor_simple_bind(symbol, NULL, known, options, out_executor);

  cohort_symbol_free(symbol);
  cohort_descs_free(known);
  return error;
}

static inline cohort_executor *simple_bind(cohort_symbol *symbol, cohort_descs *known,
                                           const cohort_executor_options *options) {
  cohort_executor *executor = NULL;

  ok(try_simple_bind(&executor, symbol, known, options));
  return executor;
}

/* The same with one grad_req for all arguments; NULL: no gradients. */
static inline cohort_executor *simple_bind_with(cohort_symbol *symbol, cohort_descs *known, const char *grad_req) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.grad_req = grad_req;
  return simple_bind(symbol, known, &options);
}

static inline cohort_error *try_reshape(cohort_executor **out_executor, const cohort_executor *executor,
                                        cohort_descs *known, const cohort_reshape_options *options) {
  cohort_error *error = cohort_executor_reshape(executor, known, options, out_executor);

  cohort_descs_free(known);
  return error;
}

static inline cohort_ndarray *array_of(const cohort_executor *executor, int32_t list, const char *name) {
  cohort_ndarray *array = NULL;

  ok(cohort_executor_array_named(executor, list, name, &array));
  return array;
}
#define arg_of(executor, name) array_of((executor), COHORT_EXECUTOR_ARGS, (name))
#define grad_of(executor, name) array_of((executor), COHORT_EXECUTOR_GRADS, (name))
#define aux_of(executor, name) array_of((executor), COHORT_EXECUTOR_AUX, (name))

static inline cohort_ndarray *output_of(const cohort_executor *executor, size_t index) {
  cohort_ndarray *array = NULL;

  ok(cohort_executor_array(executor, COHORT_EXECUTOR_OUTPUTS, index, &array));
  return array;
}

/* Writes an argument, or an auxiliary state. */
static inline void set_array(const cohort_executor *executor, int32_t list, const char *name, const float *values,
                             size_t num_values) {
  cohort_ndarray *array = array_of(executor, list, name);

  ok(cohort_ndarray_write(array, values, num_values * sizeof(float)));
  cohort_ndarray_free(array);
}
#define set_arg(executor, name, ...) set_array((executor), COHORT_EXECUTOR_ARGS, (name), FLOATS(__VA_ARGS__))
#define set_aux(executor, name, ...) set_array((executor), COHORT_EXECUTOR_AUX, (name), FLOATS(__VA_ARGS__))

/* The address of an array's elements; frees the handle. */
static inline void *address_free(cohort_ndarray *array) {
  void *const address = address_of(array);

  cohort_ndarray_free(array);
  return address;
}

/* Checks that an array is on cpu(id); frees the handle. */
static inline void is_on_cpu(cohort_ndarray *array, int32_t id) {
  cohort_context found = {0, -1};

  ok(cohort_ndarray_context(array, &found));
  cohort_ndarray_free(array);
  assert_int_equal(found.device_type, COHORT_DEVICE_CPU);
  assert_int_equal(found.device_id, id);
}

/* Checks that a handle is NULL, as for an argument without gradient. */
#define is_absent(array) assert_null(array)

/* Appends a descriptor of any dtype. */
static inline void add_typed(cohort_descs *descs, const char *name, const int64_t *shape, int32_t num_axes,
                             int32_t dtype) {
  ok(cohort_descs_add(descs, name, shape, num_axes, dtype, NULL));
}

static inline cohort_descs *no_descs(void) {
  cohort_descs *descs = NULL;

  ok(cohort_descs_create(&descs));
  return descs;
}

static inline cohort_error *try_backward_with(cohort_executor *executor, cohort_ndarray *head_grad, int32_t is_train) {
  cohort_error *error = cohort_executor_backward(executor, head_grad ? &head_grad : NULL, head_grad ? 1 : 0, is_train);

  cohort_ndarray_free(head_grad);
  return error;
}

/* A variable with one attribute. */
static inline cohort_symbol *variable_with(const char *name, const char *key, const char *value) {
  cohort_symbol *symbol = NULL;

  ok(cohort_symbol_variable(name, &key, &value, 1, &symbol));
  return symbol;
}

#endif
