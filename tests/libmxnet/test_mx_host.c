/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that record inside callbacks, call while the process ends, or give wrong lists. */
#include <pthread.h>
#include <sys/wait.h>

#include "mxnet_test.h"

static NDArrayHandle square(NDArrayHandle x) {
  NDArrayHandle *outputs = NULL;
  OpHandle op = NULL;
  int num = 0;

  ok(NNGetOpHandle("square", &op));
  ok(MXImperativeInvoke(op, 1, &x, &num, &outputs, 0, NULL, NULL));
  return outputs[0];
}

static NDArrayHandle marked(const float *values, uint32_t num) {
  NDArrayHandle x = row_of(values, num), gradient = row_of(values, num);
  uint32_t write = 1;

  ok(MXAutogradMarkVariables(1, &x, &write, &gradient));
  ok(MXNDArrayFree(gradient));
  return x;
}

static void record(int on) { ok(MXAutogradSetIsRecording(on, NULL)); }

static void take_gradient(NDArrayHandle x, const float *values, size_t num) {
  NDArrayHandle gradient = NULL;

  ok(MXNDArrayGetGrad(x, &gradient));
  assert_non_null(gradient);
  take_floats(gradient, values, num);
  ok(MXNDArrayFree(x));
}

static int num_deleted;
static const float *squared_values;

static int deleted(void *state) {
  (void)state;
  return ++num_deleted;
}

/* The gradient of the square of squared_values, which are recorded anew. */
static int record_again(int num_head_grads, int num_gradients, void **handles, const int *reqs, const int is_train,
                        void *state) {
  NDArrayHandle x = marked(squared_values, 2), y, gradient = NULL;
  float values[2];

  assert_int_equal(num_head_grads + num_gradients, 2);
  (void)reqs;
  (void)is_train;
  (void)state;
  record(1);
  y = square(x);
  record(0);
  ok(MXAutogradBackward(1, &y, handles, 0));
  ok(MXNDArrayGetGrad(x, &gradient));
  ok(MXNDArraySyncCopyToCPU(gradient, values, 2));
  ok(MXNDArraySyncCopyFromCPU(handles[1], values, 2));
  ok(MXNDArrayFree(gradient));
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(x));
  ok(MXNDArrayFree(handles[0]));
  ok(MXNDArrayFree(handles[1]));
  return 1;
}

static struct MXCallbackList *callbacks(void) {
  static int (*functions[])(void) = {(int (*)(void))(void (*)(void))record_again,
                                     (int (*)(void))(void (*)(void))deleted};
  static void *contexts[] = {NULL, NULL};
  static struct MXCallbackList list = {2, functions, contexts};

  num_deleted = 0;
  return &list;
}

/* A function of the host may record and compute gradients itself, while a backward pass calls it. */
static void functions_of_the_host_may_record(void **state) {
  const float values[] = {1, 2}, squares[] = {1, 4}, expected[] = {4, 32};
  NDArrayHandle x = marked(values, 2), y = row_of(squares, 2), z;

  (void)state;
  squared_values = values;
  record(1);
  ok(MXCustomFunctionRecord(1, &x, 1, &y, callbacks()));
  z = square(y);
  record(0);
  ok(MXAutogradBackward(1, &z, NULL, 0));
  assert_int_equal(num_deleted, 1);
  ok(MXNDArrayFree(z));
  ok(MXNDArrayFree(y));
  take_gradient(x, expected, 2);
}

/* A record that nobody needs ends with its arrays, not with the thread. */
static void what_was_recorded_ends_with_its_arrays(void **state) {
  const float values[] = {1, 2};
  NDArrayHandle x = marked(values, 2), y = row_of(values, 2);

  (void)state;
  record(1);
  ok(MXCustomFunctionRecord(1, &x, 1, &y, callbacks()));
  record(0);
  assert_int_equal(num_deleted, 0);
  ok(MXNDArrayFree(y));
  assert_int_equal(num_deleted, 1);
  ok(MXNDArrayFree(x));
}

/* A list without callbacks is refused. */
static void functions_need_their_callbacks(void **state) {
  struct MXCallbackList empty = {2, NULL, NULL};
  const float values[] = {1, 2};
  NDArrayHandle x = marked(values, 2), y = row_of(values, 2);

  (void)state;
  record(1);
  fails(MXCustomFunctionRecord(1, &x, 1, &y, &empty), "without a callback");
  fails(MXCustomFunctionRecord(-1, &x, 1, &y, callbacks()), "negative");
  record(0);
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(x));
}

static void *numpy_shape_of_a_thread(void *result) {
  if (MXIsNumpyShape((int *)result) != 0) *(int *)result = -1;
  return NULL;
}

static int numpy_shape_elsewhere(void) {
  pthread_t thread;
  int found = -1;

  assert_int_equal(pthread_create(&thread, NULL, numpy_shape_of_a_thread, &found), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  return found;
}

/* A thread that asks for NumPy's shapes leaves the others as they are; one that turns them off does so for all. */
static void numpy_shapes_of_all_threads(void **state) {
  int previous = -1;

  (void)state;
  ok(MXSetIsNumpyShape(1, NULL));
  assert_int_equal(numpy_shape_elsewhere(), 0);
  ok(MXSetIsNumpyShape(2, &previous));
  assert_int_equal(previous, 1);
  assert_int_equal(numpy_shape_elsewhere(), 2);
  ok(MXSetIsNumpyShape(1, NULL));
  assert_int_equal(numpy_shape_elsewhere(), 2);
  ok(MXSetIsNumpyShape(0, NULL));
  assert_int_equal(numpy_shape_elsewhere(), 0);
}

/* A shape that cannot be is refused before it is read. */
static void shapes_of_too_many_axes_are_not_read(void **state) {
  const int64_t far[] = {0, INT64_C(1) << 40}, before[] = {-1, 1}, length = 1, **in = NULL, **out = NULL, **aux = NULL;
  const int *in_axes = NULL, *out_axes = NULL, *aux_axes = NULL;
  size_t num_in = 0, num_out = 0, num_aux = 0;
  const char *name = "x";
  SymbolHandle x = NULL;
  int complete = 0;

  (void)state;
  ok(MXSymbolCreateVariable(name, &x));
  fails(MXSymbolInferShapeEx64(x, 1, &name, far, &length, &num_in, &in_axes, &in, &num_out, &out_axes, &out, &num_aux,
                               &aux_axes, &aux, &complete),
        "at most 32");
  fails(MXSymbolInferShapeEx64(x, 1, &name, before, &length, &num_in, &in_axes, &in, &num_out, &out_axes, &out,
                               &num_aux, &aux_axes, &aux, &complete),
        "begin at -1");
  ok(MXSymbolFree(x));
}

static void fail_late(void) {
  char name[300];
  OpHandle op = NULL;

  memset(name, 'a', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  _exit(NNGetOpHandle(name, &op) == -1 && strstr(MXGetLastError(), name) ? 0 : 1);
}

/* Errors have messages while the process ends, after the variables of its threads are gone. */
static void errors_have_messages_at_exit(void **state) {
  int status = -1;
  pid_t child;

  (void)state;
  fails(MXNDArrayFree(&child), "freed or was never one");
  child = fork();
  if (child == 0) {
    if (atexit(fail_late) != 0) _exit(2);
    exit(3);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(functions_of_the_host_may_record),     TEST(what_was_recorded_ends_with_its_arrays),
      TEST(functions_need_their_callbacks),       TEST(numpy_shapes_of_all_threads),
      TEST(shapes_of_too_many_axes_are_not_read), TEST(errors_have_messages_at_exit),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
