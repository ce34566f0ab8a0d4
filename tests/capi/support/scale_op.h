/* SPDX-License-Identifier: Apache-2.0 */
/* A custom operator for tests: it scales its input and counts the calls of its callbacks. */
#ifndef COHORT_TESTS_SCALE_OP_H
#define COHORT_TESTS_SCALE_OP_H

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "support/executor_tests.h"

/* ---- the operator: output = factor * data; its state counts passes, its auxiliary state counts those of training
 * ---- */

typedef struct host {
  int num_declared, num_created, num_released, num_forward, num_backward, num_ended;
  int32_t fail_declare, fail_infer, fail_create, fail_forward, fail_backward;
  int wrong_infer;   /* one output too many */
  int with_operator; /* forward applies an operator to its arguments */
  int keep;          /* forward keeps a handle on its input */
  cohort_ndarray *kept;
  pthread_t caller;
  int on_other_threads; /* calls of forward and backward that were */
  cohort_context context;
  pthread_mutex_t mutex;
} host;

typedef struct scale_state {
  double factor;
  int num_forward;
} scale_state;

static inline double factor_of(const char *const *keys, const char *const *values, size_t num_attrs) {
  size_t i;

  for (i = 0; i < num_attrs; ++i)
    if (strcmp(keys[i], "factor") == 0) return atof(values[i]);
  return 1;
}

static inline int32_t scale_declare(const char *const *keys, const char *const *values, size_t num_attrs,
                                    cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  host *self = user_data;

  (void)keys;
  (void)values;
  (void)num_attrs;
  ++self->num_declared;
  if (self->fail_declare) return self->fail_declare;
  ok(cohort_descs_add(inputs, "data", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(aux, "calls", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(outputs, "scaled", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL));
  return 0;
}

static inline int32_t scale_infer(const char *const *keys, const char *const *values, size_t num_attrs,
                                  const cohort_descs *known, cohort_descs *inputs, cohort_descs *aux,
                                  cohort_descs *outputs, void *user_data) {
  const int64_t one = 1;
  const host *self = user_data;
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0, dtype = 0;

  (void)keys;
  (void)values;
  (void)num_attrs;
  (void)inputs; /* the shapes and types as they are known */
  if (self->fail_infer) return self->fail_infer;
  ok(cohort_descs_get(known, 0, NULL, shape, COUNT(shape), &num_axes, &dtype, NULL));
  assert_true(num_axes >= 0);
  ok(cohort_descs_add(aux, "", &one, 1, COHORT_DTYPE_NONE, NULL));
  ok(cohort_descs_add(outputs, "", shape, num_axes, COHORT_DTYPE_NONE, NULL));
  if (self->wrong_infer) ok(cohort_descs_add(outputs, "", shape, num_axes, COHORT_DTYPE_NONE, NULL));
  return 0;
}

static inline int32_t scale_create(const char *const *keys, const char *const *values, size_t num_attrs,
                                   const cohort_context *context, void **out_state, void *user_data) {
  host *self = user_data;
  scale_state *state;

  assert_null(*out_state);
  self->context = *context;
  if (self->fail_create) return self->fail_create;
  state = calloc(1, sizeof *state);
  assert_non_null(state);
  state->factor = factor_of(keys, values, num_attrs);
  ++self->num_created;
  *out_state = state;
  return 0;
}

static inline void note_thread(host *self, int *count) {
  pthread_mutex_lock(&self->mutex);
  ++*count;
  if (!pthread_equal(pthread_self(), self->caller)) ++self->on_other_threads;
  pthread_mutex_unlock(&self->mutex);
}

static inline cohort_ndarray *entry(const cohort_arrays *arrays, const char *name) {
  cohort_ndarray *array = NULL;
  size_t index = 0;

  ok(cohort_arrays_find(arrays, name, &index));
  ok(cohort_arrays_get(arrays, index, &array));
  return array;
}

/* to = factor * from; frees both. */
static inline void scale_into(cohort_ndarray *from, cohort_ndarray *to, double factor) {
  int64_t size = 0;
  size_t bytes, i;
  float *values;

  ok(cohort_ndarray_size(from, &size));
  bytes = (size_t)size * sizeof *values;
  values = malloc(bytes);
  assert_non_null(values);
  ok(cohort_ndarray_read(from, values, bytes));
  for (i = 0; i < (size_t)size; ++i) values[i] = (float)(factor * (double)values[i]);
  ok(cohort_ndarray_write(to, values, bytes));
  free(values);
  cohort_ndarray_free(from);
  cohort_ndarray_free(to);
}

static inline int32_t scale_forward(void *of, const cohort_arrays *inputs, const cohort_arrays *aux,
                                    const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
  host *self = user_data;
  scale_state *state = of;

  note_thread(self, &self->num_forward);
  if (self->fail_forward) return self->fail_forward;
  ++state->num_forward;
  if (self->keep && !self->kept) self->kept = entry(inputs, "data");
  if (is_train) {
    cohort_ndarray *calls = entry(aux, "calls");
    const float count = (float)state->num_forward;

    ok(cohort_ndarray_write(calls, &count, sizeof count));
    cohort_ndarray_free(calls);
  }
  if (self->with_operator) {
    cohort_ndarray *data = entry(inputs, "data"), *scaled = entry(outputs, "scaled");
    const char *const key = "scalar";
    char text[32];
    const char *value = text;

    snprintf(text, sizeof text, "%g", state->factor);
    ok(cohort_operator_invoke("_mul_scalar", &key, &value, 1, &data, 1, &scaled, 1, NULL, NULL));
    cohort_ndarray_free(data);
    cohort_ndarray_free(scaled);
    return 0;
  }
  scale_into(entry(inputs, "data"), entry(outputs, "scaled"), state->factor);
  return 0;
}

static inline int32_t scale_backward(void *of, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                                     const cohort_arrays *aux, const cohort_arrays *outputs,
                                     const cohort_arrays *gradients, void *user_data) {
  host *self = user_data;
  const scale_state *state = of;
  size_t num = 0;

  note_thread(self, &self->num_backward);
  if (self->fail_backward) return self->fail_backward;
  assert_true(state->num_forward > 0); /* the state of the forward pass */
  ok(cohort_arrays_num(inputs, &num));
  assert_int_equal(num, 1);
  ok(cohort_arrays_num(aux, &num));
  assert_int_equal(num, 1);
  ok(cohort_arrays_num(outputs, &num));
  assert_int_equal(num, 1);
  scale_into(entry(head_grads, "scaled"), entry(gradients, "data"), state->factor);
  return 0;
}

static inline void scale_release(void *state, void *user_data) {
  ++((host *)user_data)->num_released;
  free(state);
}

static inline void host_ended(void *user_data) { ++((host *)user_data)->num_ended; }

static inline cohort_custom_op scale_op(host *self) {
  cohort_custom_op op = COHORT_CUSTOM_OP_INIT;

  op.declare = scale_declare;
  op.infer_shape = scale_infer;
  op.create = scale_create;
  op.forward = scale_forward;
  op.backward = scale_backward;
  op.release = scale_release;
  op.ended = host_ended;
  op.user_data = self;
  return op;
}

static inline void begin(host *self, cohort_bool any_thread) {
  cohort_custom_op op = scale_op(self);

  memset(self, 0, sizeof *self);
  pthread_mutex_init(&self->mutex, NULL);
  self->caller = pthread_self();
  op.any_thread = any_thread;
  ok(cohort_custom_register("scale", &op));
}

/* All states and handles have been released. */
static inline void end(host *self) {
  const struct timespec moment = {0, 1000000};
  size_t num = 0;
  int i;

  ok(cohort_custom_unregister("scale"));
  /* A device drops what its work held a moment after the work is done; a later call then releases it. */
  for (i = 0; i < 2000 && self->num_released < self->num_created; ++i) {
    nanosleep(&moment, NULL);
    ok(cohort_num_devices(COHORT_DEVICE_CPU, &num));
  }
  assert_int_equal(self->num_released, self->num_created);
  assert_int_equal(self->num_ended, 1);
  pthread_mutex_destroy(&self->mutex);
}

static inline cohort_symbol *scale_node(const char *factor, cohort_symbol *data) {
  return node("Custom", "scale", ATTRS("op_type", "scale", "factor", factor), INPUTS(data));
}

/* 3 * square(data), whose gradient is 6 * data. */
static inline cohort_symbol *network(void) {
  return scale_node("3", node("square", "sq", NO_ATTRS, INPUTS(variable("data"))));
}

#endif
