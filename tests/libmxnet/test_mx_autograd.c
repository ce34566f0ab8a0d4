/* SPDX-License-Identifier: Apache-2.0 */
/* Operators applied to arrays, recorded and not; gradients; cached operators; functions of the host. */
#include "mxnet_test.h"

#include <pthread.h>

static NDArrayHandle apply(const char *op, NDArrayHandle *inputs, int num_inputs, const char *key, const char *value) {
  OpHandle handle = NULL;
  NDArrayHandle *outputs = NULL;
  int num_outputs = 0;
  const int *storage = NULL;

  ok(NNGetOpHandle(op, &handle));
  ok(MXImperativeInvokeEx(handle, num_inputs, inputs, &num_outputs, &outputs, key ? 1 : 0, &key, &value, &storage));
  assert_int_equal(num_outputs, 1);
  assert_int_equal(storage[0], 0);
  return outputs[0];
}

static NDArrayHandle square(NDArrayHandle x) { return apply("square", &x, 1, NULL, NULL); }

static NDArrayHandle marked(const float *values, uint32_t num, uint32_t req) {
  NDArrayHandle x = row_of(values, num), gradient = NULL;

  ok(MXNDArrayCreate(&num, 1, 1, 0, 0, &gradient));
  ok(MXAutogradMarkVariables(1, &x, &req, &gradient));
  ok(MXNDArrayFree(gradient));
  return x;
}

static void assert_gradient(NDArrayHandle x, const float *values, size_t num) {
  NDArrayHandle gradient = NULL;

  ok(MXNDArrayGetGrad(x, &gradient));
  assert_non_null(gradient);
  take_floats(gradient, values, num);
}

static void record(int on) {
  ok(MXAutogradSetIsRecording(on, NULL));
  ok(MXAutogradSetIsTraining(on, NULL));
}

/* An operator gives new arrays, or writes to given ones; one without shape takes what it is given. */
static void operators_write_given_outputs(void **state) {
  const float values[] = {1, 2}, doubled[] = {2, 4};
  NDArrayHandle x = row_of(values, 2), out[1], *outputs = out;
  OpHandle op = NULL;
  const char *key = "scalar", *value = "2";
  int num = 1;

  (void)state;
  ok(NNGetOpHandle("_mul_scalar", &op));
  take_floats(apply("_mul_scalar", &x, 1, key, value), doubled, 2);
  out[0] = row_of(values, 2);
  ok(MXImperativeInvoke(op, 1, &x, &num, &outputs, 1, &key, &value));
  take_floats(out[0], doubled, 2);
  ok(MXNDArrayCreateNone(&out[0]));
  ok(MXImperativeInvoke(op, 1, &x, &num, &outputs, 1, &key, &value));
  take_floats(out[0], doubled, 2);
  ok(MXNDArrayFree(x));
}

/* A random operator takes the type of the array that it is to fill, if none is named. */
static void random_operators_take_the_outputs_type(void **state) {
  const uint32_t shape[] = {3};
  const char *key = "low", *value = "0.5";
  NDArrayHandle out[1], *outputs = out;
  double numbers[3] = {0, 0, 0};
  OpHandle op = NULL;
  int num = 1, i;

  (void)state;
  ok(MXNDArrayCreateEx(shape, 1, 1, 0, 0, 1, &out[0]));
  ok(NNGetOpHandle("_random_uniform", &op));
  ok(MXImperativeInvoke(op, 0, NULL, &num, &outputs, 1, &key, &value));
  ok(MXNDArraySyncCopyToCPU(out[0], numbers, 3));
  for (i = 0; i < 3; ++i) assert_true(numbers[i] >= 0.5 && numbers[i] <= 1);
  ok(MXNDArrayFree(out[0]));
}

/* Errors of operators name them. */
static void errors_name_operators(void **state) {
  const float values[] = {1, 2, 3};
  NDArrayHandle in[2], *outputs = NULL;
  OpHandle op = NULL;
  int num = 0;

  (void)state;
  in[0] = row_of(values, 2);
  in[1] = row_of(values, 3);
  ok(NNGetOpHandle("elemwise_add", &op));
  fails(MXImperativeInvoke(op, 2, in, &num, &outputs, 0, NULL, NULL), "elemwise_add");
  fails(MXImperativeInvoke(in[0], 2, in, &num, &outputs, 0, NULL, NULL), "an operator");
  ok(MXNDArrayFree(in[0]));
  ok(MXNDArrayFree(in[1]));
}

/* Gradients are written where they were asked for, and added up with "add". */
static void gradients_are_written_and_added(void **state) {
  const float values[] = {1, 2}, twice[] = {2, 4}, both[] = {4, 8};
  NDArrayHandle x = marked(values, 2, 1), y;
  int i, fresh = 0;

  (void)state;
  record(1);
  y = square(x);
  record(0);
  ok(MXAutogradBackward(1, &y, NULL, 0));
  assert_gradient(x, twice, 2);
  ok(MXNDArrayGetGradState(x, &fresh));
  assert_int_equal(fresh, 1);
  ok(MXNDArraySetGradState(x, 0));
  ok(MXNDArrayGetGradState(x, &fresh));
  assert_int_equal(fresh, 0);
  fails(MXAutogradBackward(1, &y, NULL, 0), "");
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(x));

  x = marked(values, 2, 3);
  {
    const float zeros[] = {0, 0};
    NDArrayHandle gradient = NULL;

    ok(MXNDArrayGetGrad(x, &gradient));
    ok(MXNDArraySyncCopyFromCPU(gradient, zeros, 2));
    ok(MXNDArrayFree(gradient));
  }
  for (i = 0; i < 2; ++i) {
    record(1);
    y = square(x);
    record(0);
    ok(MXAutogradBackward(1, &y, NULL, 0));
    ok(MXNDArrayFree(y));
  }
  assert_gradient(x, both, 2);
  ok(MXNDArrayFree(x));
}

/* Arrays that are not recorded, or come from no variable, have no gradient. */
static void what_is_not_recorded_has_no_gradient(void **state) {
  const float values[] = {1, 2};
  NDArrayHandle x = marked(values, 2, 1), plain = row_of(values, 2), y = square(x), z, gradient = &x;

  (void)state;
  record(1);
  z = square(plain);
  record(0);
  fails(MXAutogradBackward(1, &y, NULL, 0), "not in a recorded graph");
  fails(MXAutogradBackward(1, &z, NULL, 0), "not in a recorded graph");
  ok(MXNDArrayGetGrad(plain, &gradient));
  assert_null(gradient);
  ok(MXNDArrayFree(x));
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(z));
  ok(MXNDArrayFree(plain));
}

/* Gradients flow through views, but not through a detached array, which still shares memory. */
static void views_carry_gradients_and_detached_arrays_do_not(void **state) {
  const float values[] = {1, 2, 3}, expected[] = {0, 4, 6}, head_values[] = {2, 4, 6}, detached_expected[] = {1, 4, 9};
  NDArrayHandle x = marked(values, 3, 1), part = NULL, y, detached = NULL, in[2], z;

  (void)state;
  record(1);
  ok(MXNDArraySlice(x, 1, 3, &part));
  y = square(part);
  record(0);
  ok(MXAutogradBackward(1, &y, NULL, 0));
  assert_gradient(x, expected, 3);
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(part));

  record(1);
  y = square(x); /* 1 4 9 */
  ok(MXNDArrayDetach(y, &detached));
  in[0] = x;
  in[1] = detached;
  z = apply("elemwise_mul", in, 2, NULL, NULL); /* x * 9, the second factor a constant */
  record(0);
  ok(MXAutogradBackward(1, &z, NULL, 0));
  assert_gradient(x, detached_expected, 3);
  ok(MXNDArraySyncCopyFromCPU(y, head_values, 3));
  assert_floats(detached, head_values, 3);
  ok(MXNDArrayFree(z));
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(detached));
  ok(MXNDArrayFree(x));
}

/* Gradients of given variables come as new arrays, and have gradients themselves if that is asked for. */
static void gradients_of_gradients(void **state) {
  const float values[] = {1, 2}, first[] = {3, 12}, second[] = {6, 12};
  NDArrayHandle x = marked(values, 2, 1), in[2], y, *gradients = NULL, gradient;
  int *storage = NULL;

  (void)state;
  record(1);
  in[0] = x;
  in[1] = square(x);
  y = apply("elemwise_mul", in, 2, NULL, NULL);
  ok(MXAutogradBackwardEx(1, &y, NULL, 1, &x, 1, 1, 1, &gradients, &storage));
  record(0);
  gradient = gradients[0];
  assert_floats(gradient, first, 2);
  ok(MXAutogradBackward(1, &gradient, NULL, 0));
  assert_gradient(x, second, 2);
  ok(MXNDArrayFree(gradient));
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(in[1]));
  ok(MXNDArrayFree(x));
}

/* A recorded array is a symbol as well. */
static void what_was_recorded_is_a_symbol(void **state) {
  const float values[] = {1, 2};
  NDArrayHandle x = marked(values, 2, 1), y;
  SymbolHandle symbol = NULL;
  const char **names = NULL;
  uint32_t num = 0;

  (void)state;
  record(1);
  y = square(x);
  record(0);
  ok(MXAutogradGetSymbol(y, &symbol));
  ok(MXSymbolListArguments(symbol, &num, &names));
  assert_int_equal(num, 1);
  ok(MXSymbolFree(symbol));
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(x));
}

static int num_deleted;

static int thrice(int num_head_grads, int num_gradients, void **handles, const int *reqs, const int is_train,
                  void *state) {
  NDArrayHandle tripled;
  float values[2];

  assert_int_equal(num_head_grads, 1);
  assert_int_equal(num_gradients, 1);
  assert_int_equal(reqs[0], 1);
  (void)is_train;
  (void)state;
  tripled = apply("_mul_scalar", handles, 1, "scalar", "3");
  ok(MXNDArraySyncCopyToCPU(tripled, values, 2));
  ok(MXNDArraySyncCopyFromCPU(handles[1], values, 2));
  ok(MXNDArrayFree(tripled));
  ok(MXNDArrayFree(handles[0]));
  ok(MXNDArrayFree(handles[1]));
  return 1;
}

static int deleted(void *state) {
  (void)state;
  return ++num_deleted;
}

/* A function that the host has computed takes part in the backward pass, and is released after it. */
static void functions_of_the_host_have_gradients(void **state) {
  int (*callbacks[])(void) = {(int (*)(void))(void (*)(void))thrice, (int (*)(void))(void (*)(void))deleted};
  void *contexts[] = {NULL, NULL};
  struct MXCallbackList list = {2, NULL, NULL};
  const float values[] = {1, 2}, expected[] = {3, 3};
  NDArrayHandle x = marked(values, 2, 1), y = row_of(values, 2);

  (void)state;
  list.callbacks = callbacks;
  list.contexts = contexts;
  num_deleted = 0;
  record(1);
  ok(MXCustomFunctionRecord(1, &x, 1, &y, &list));
  record(0);
  assert_int_equal(num_deleted, 0);
  ok(MXAutogradBackward(1, &y, NULL, 0));
  assert_gradient(x, expected, 2);
  assert_int_equal(num_deleted, 1);
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(x));
}

static void *flags_of_a_thread(void *result) {
  bool recording = true;

  if (MXAutogradIsRecording(&recording) != 0) recording = true;
  *(int *)result = recording;
  return NULL;
}

/* Flags are a thread's own. */
static void flags_belong_to_threads(void **state) {
  pthread_t thread;
  int recording_there = -1, previous = -1;

  (void)state;
  ok(MXAutogradSetIsRecording(1, NULL));
  assert_int_equal(pthread_create(&thread, NULL, flags_of_a_thread, &recording_there), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(recording_there, 0);
  ok(MXAutogradSetIsRecording(0, &previous));
  assert_int_equal(previous, 1);
}

static void *backward_of(void *head) {
  return MXAutogradBackward(1, (NDArrayHandle *)head, NULL, 0) == 0 ? NULL : head;
}

/* Another thread may run the backward pass of what this one has recorded. */
static void another_thread_runs_backward(void **state) {
  const float values[] = {1, 2}, twice[] = {2, 4};
  NDArrayHandle x = marked(values, 2, 1), y;
  pthread_t thread;
  void *failed = &thread;

  (void)state;
  record(1);
  y = square(x);
  record(0);
  assert_int_equal(pthread_create(&thread, NULL, backward_of, &y), 0);
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  assert_gradient(x, twice, 2);
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(x));
}

/* A cached operator applies its graph, and is recorded. */
static void cached_operators_are_recorded(void **state) {
  const float values[] = {1, 2}, result[] = {2, 5}, twice[] = {2, 4};
  SymbolHandle x_symbol = NULL, y_symbol = NULL, z_symbol = NULL;
  NDArrayHandle x = marked(values, 2, 1), z, *outputs = NULL;
  const char *key = "scalar", *value = "1";
  CachedOpHandle cached = NULL;
  OpHandle op = NULL;
  const int *storage = NULL;
  int num = 0;

  (void)state;
  ok(MXSymbolCreateVariable("x", &x_symbol));
  ok(NNGetOpHandle("square", &op));
  ok(MXSymbolCreateAtomicSymbol(op, 0, NULL, NULL, &y_symbol));
  ok(MXSymbolCompose(y_symbol, "y", 1, NULL, &x_symbol));
  ok(NNGetOpHandle("_plus_scalar", &op));
  ok(MXSymbolCreateAtomicSymbol(op, 1, &key, &value, &z_symbol));
  ok(MXSymbolCompose(z_symbol, "z", 1, NULL, &y_symbol));
  ok(MXCreateCachedOpEx(z_symbol, 0, NULL, NULL, &cached));
  ok(MXSymbolFree(x_symbol));
  ok(MXSymbolFree(y_symbol));
  ok(MXSymbolFree(z_symbol));
  record(1);
  ok(MXInvokeCachedOpEx(cached, 1, &x, &num, &outputs, &storage));
  record(0);
  assert_int_equal(num, 1);
  z = outputs[0];
  assert_floats(z, result, 2);
  ok(MXAutogradBackward(1, &z, NULL, 0));
  assert_gradient(x, twice, 2);
  num = 0;
  outputs = NULL;
  fails(MXInvokeCachedOpEx(cached, 0, NULL, &num, &outputs, &storage), "expected 1 inputs, found 0");
  ok(MXFreeCachedOp(cached));
  fails(MXFreeCachedOp(cached), "freed");
  ok(MXNDArrayFree(z));
  ok(MXNDArrayFree(x));
}

/* The same seed gives the same numbers, and one application others than the next. */
static void seeds_repeat_random_numbers(void **state) {
  NDArrayHandle draws[3];
  float values[3][4];
  int i;

  (void)state;
  for (i = 0; i < 3; ++i) {
    if (i != 1) ok(MXRandomSeed(7));
    draws[i] = apply("_random_uniform", NULL, 0, "shape", "(4,)");
    ok(MXNDArraySyncCopyToCPU(draws[i], values[i], 4));
    ok(MXNDArrayFree(draws[i]));
  }
  assert_memory_equal(values[0], values[2], sizeof values[0]);
  assert_memory_not_equal(values[0], values[1], sizeof values[0]);
}

/* Recording makes the thread's tape, which lives as long as the thread: before the handles of a test are counted. */
static int make_tape(void **state) {
  const float value = 1;
  NDArrayHandle x = marked(&value, 1, 1), y;

  (void)state;
  record(1);
  y = square(x);
  record(0);
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(x));
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(operators_write_given_outputs),
      TEST(random_operators_take_the_outputs_type),
      TEST(errors_name_operators),
      TEST(gradients_are_written_and_added),
      TEST(what_is_not_recorded_has_no_gradient),
      TEST(views_carry_gradients_and_detached_arrays_do_not),
      TEST(gradients_of_gradients),
      TEST(what_was_recorded_is_a_symbol),
      TEST(functions_of_the_host_have_gradients),
      TEST(flags_belong_to_threads),
      TEST(another_thread_runs_backward),
      TEST(cached_operators_are_recorded),
      TEST(seeds_repeat_random_numbers),
  };

  return cmocka_run_group_tests(tests, make_tape, NULL);
}
