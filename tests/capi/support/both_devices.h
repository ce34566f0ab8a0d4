/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that an operator gives on gpu(0), twice and to the bit, what it gives on cpu(0). */
#ifndef COHORT_TESTS_BOTH_DEVICES_H
#define COHORT_TESTS_BOTH_DEVICES_H

#include <math.h>

#include "support/executor_tests.h"

enum { MOST_OPERANDS = 8, MOST_RESULTS = 8, MOST_NUMBERS = 1 << 15 };

/* An input; its values are value(i) rounded to the type. */
typedef struct operand {
  int64_t shape[4];
  int32_t num_axes, dtype;
  double (*value)(int64_t i);
  int constant; /* it has no gradient */
} operand;

/* Numbers from -1 to 1 that look random. */
static inline double spread(int64_t i) {
  uint32_t x = (uint32_t)i * 2654435761u + 12345u;

  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return (double)(x >> 8) / (1 << 23) - 1;
}

static inline double bytes(int64_t i) { return floor(128 + 127.9 * spread(i)); }

static inline int64_t size_of(const operand *of) {
  int64_t size = 1;
  int32_t axis;

  for (axis = 0; axis < of->num_axes; ++axis) size *= of->shape[axis];
  return size;
}

/* Casts an array and frees the original. */
static inline cohort_ndarray *cast_free(cohort_ndarray *array, int32_t dtype) {
  cohort_ndarray *result = NULL;

  ok(cohort_ndarray_cast(array, dtype, &result));
  cohort_ndarray_free(array);
  return result;
}

static inline cohort_ndarray *array_on(const cohort_context *where, const operand *of) {
  static double values[MOST_NUMBERS];
  const int64_t size = size_of(of);
  cohort_ndarray *array = NULL;
  int64_t i;

  assert_true(size <= MOST_NUMBERS);
  for (i = 0; i < size; ++i) values[i] = of->value(i);
  ok(cohort_ndarray_from_host(values, (size_t)size * sizeof(double), of->shape, of->num_axes, COHORT_DTYPE_FLOAT64,
                              where, &array));
  return of->dtype == COHORT_DTYPE_FLOAT64 ? array : cast_free(array, of->dtype);
}

/* The outputs and then the gradients of a call on one device, one after the other. */
typedef struct numbers {
  size_t count;
  double at[MOST_NUMBERS];
} numbers;

/* Frees the array. */
static inline void append(numbers *to, cohort_ndarray *array) {
  int64_t size = 0;

  array = cast_free(array, COHORT_DTYPE_FLOAT64);
  ok(cohort_ndarray_size(array, &size));
  assert_true(to->count + (size_t)size <= MOST_NUMBERS);
  ok(cohort_ndarray_read(array, to->at + to->count, (size_t)size * sizeof(double)));
  to->count += (size_t)size;
  cohort_ndarray_free(array);
}

/* Applies the operator with a seed. */
static inline void apply_on(const cohort_context *where, const char *op, const char *const *attrs, const operand *in,
                            size_t num_in, numbers *to) {
  cohort_invoke_options options = COHORT_INVOKE_OPTIONS_INIT;
  const char *keys[8], *values[8];
  cohort_ndarray *inputs[MOST_OPERANDS] = {NULL}, *output = NULL;
  cohort_arrays *results = NULL;
  size_t num_attrs = 0, count = 0, i;

  options.seed = 41;
  for (; attrs[2 * num_attrs]; ++num_attrs) {
    keys[num_attrs] = attrs[2 * num_attrs];
    values[num_attrs] = attrs[2 * num_attrs + 1];
  }
  for (i = 0; i < num_in; ++i) inputs[i] = array_on(where, &in[i]);
  ok(cohort_operator_invoke(op, keys, values, num_attrs, inputs, num_in, NULL, 0, &options, &results));
  ok(cohort_arrays_num(results, &count));
  for (i = 0; i < count; ++i) {
    ok(cohort_arrays_get(results, i, &output));
    append(to, output);
  }
  cohort_arrays_free(results);
  for (i = 0; i < num_in; ++i) cohort_ndarray_free(inputs[i]);
}

/* Outputs, and the gradients of all inputs that are not constant, for head gradients that look random. Empty arrays
 * give outputs only: to an executor a length of 0 means unknown. */
static inline void differentiate_on(const cohort_context *where, const char *op, const char *const *attrs,
                                    const operand *in, size_t num_in, numbers *to) {
  static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  const char *grad_reqs[MOST_OPERANDS];
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *inputs[MOST_OPERANDS + 1] = {NULL}, *symbol;
  cohort_descs *known = no_descs();
  cohort_executor *executor = NULL;
  cohort_ndarray *heads[MOST_RESULTS];
  size_t num_outputs = 0, i;

  for (i = 0; i < num_in; ++i) {
    if (size_of(&in[i]) > 0) continue;
    cohort_descs_free(known);
    apply_on(where, op, attrs, in, num_in, to);
    return;
  }
  for (i = 0; i < num_in; ++i) {
    inputs[i] = variable(names[i]);
    add_typed(known, names[i], in[i].shape, in[i].num_axes, in[i].dtype);
    grad_reqs[i] = in[i].constant ? "null" : "write";
  }
  symbol = node(op, "op", attrs, inputs);
  options.grad_req_list = grad_reqs;
  options.grad_req_names = names;
  options.num_grad_reqs = num_in;
  ok(cohort_executor_simple_bind(symbol, where, known, &options, &executor));
  cohort_symbol_free(symbol);
  cohort_descs_free(known);
  for (i = 0; i < num_in; ++i) {
    cohort_ndarray *from = array_on(where, &in[i]), *arg = arg_of(executor, names[i]);

    ok(cohort_ndarray_copy_to(from, arg));
    cohort_ndarray_free(arg);
    cohort_ndarray_free(from);
  }
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_num_arrays(executor, COHORT_EXECUTOR_OUTPUTS, &num_outputs));
  for (i = 0; i < num_outputs; ++i) {
    cohort_ndarray *output = output_of(executor, i);
    operand head = {{0}, 0, 0, spread, 0};

    ok(cohort_ndarray_shape(output, head.shape, 4, &head.num_axes));
    ok(cohort_ndarray_dtype(output, &head.dtype));
    heads[i] = array_on(where, &head);
    append(to, output);
  }
  ok(cohort_executor_backward(executor, heads, num_outputs, 1));
  for (i = 0; i < num_in; ++i) {
    if (!in[i].constant) append(to, grad_of(executor, names[i]));
  }
  for (i = 0; i < num_outputs; ++i) cohort_ndarray_free(heads[i]);
  cohort_executor_free(executor);
}

typedef void (*call_on)(const cohort_context *where, const char *op, const char *const *attrs, const operand *in,
                        size_t num_in, numbers *to);

/* The GPU's numbers are equal to the bit in two calls, and differ from the CPU's by at most `bound`, relative to 1 or
 * to the number. */
static inline void alike(call_on call, const char *op, const char *const *attrs, const operand *in, size_t num_in,
                         double bound) {
  static const cohort_context cpu = {COHORT_DEVICE_CPU, 0}, gpu = {COHORT_DEVICE_GPU, 0};
  static numbers expected, found, again;
  size_t i;

  expected.count = found.count = again.count = 0;
  call(&cpu, op, attrs, in, num_in, &expected);
  call(&gpu, op, attrs, in, num_in, &found);
  call(&gpu, op, attrs, in, num_in, &again);
  assert_int_equal(found.count, expected.count);
  assert_int_equal(again.count, expected.count);
  for (i = 0; i < found.count; ++i) {
    const double a = expected.at[i], b = found.at[i];

    if (memcmp(&b, &again.at[i], sizeof b) != 0)
      fail_msg("%s: number %d is %.17g, then %.17g", op, (int)i, b, again.at[i]);
    if (!(fabs(a - b) <= bound * fmax(1, fabs(a))) && !(isnan(a) && isnan(b)) && a != b) {
      fail_msg("%s, type %d, axes %d, length %d: number %d is %.9g on the CPU, %.9g on the GPU", op, in[0].dtype,
               in[0].num_axes, (int)in[0].shape[in[0].num_axes - 1], (int)i, a, b);
    }
  }
}

/* Ends the test as skipped, by name, on a machine without a GPU. */
static inline void need_gpu(void) {
  size_t count = 0;

  ok(cohort_num_devices(COHORT_DEVICE_GPU, &count));
  if (count == 0) skip();
}

#endif
