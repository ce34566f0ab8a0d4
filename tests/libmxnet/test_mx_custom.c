/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the host: described, made and run through MXNet's callbacks. */
#include "mxnet_test.h"

typedef int (*Callback)(void);
#define CALLBACK(function) ((Callback)(void (*)(void))(function))

static int num_properties, num_operators, num_forwards;

static int list_names(char ***out, void *state) {
  *out = state;
  return 1;
}

static int infer_shape(int num, int *num_axes, int **shapes, void *state) {
  (void)state;
  assert_int_equal(num, 2);
  num_axes[1] = num_axes[0];
  shapes[1] = shapes[0];
  return 1;
}

static int infer_type(int num, int *dtypes, void *state) {
  (void)state;
  assert_int_equal(num, 2);
  dtypes[1] = dtypes[0];
  return 1;
}

/* Writes `factor` times the input, through arrays of its own. The handles are the callback's. */
static void multiply(NDArrayHandle from, NDArrayHandle to, float factor) {
  float values[2];

  ok(MXNDArraySyncCopyToCPU(from, values, 2));
  values[0] *= factor;
  values[1] *= factor;
  ok(MXNDArraySyncCopyFromCPU(to, values, 2));
}

static int forward(int num, void **arrays, int *tags, const int *reqs, const int is_train, void *state) {
  const float factor = *(const float *)state;

  (void)is_train;
  assert_int_equal(num, 2);
  assert_int_equal(tags[0], 0);
  assert_int_equal(tags[1], 1);
  assert_int_equal(reqs[0], 1);
  multiply(arrays[0], arrays[1], factor);
  ok(MXNDArrayFree(arrays[0]));
  ok(MXNDArrayFree(arrays[1]));
  ++num_forwards;
  return factor > 0;
}

static int backward(int num, void **arrays, int *tags, const int *reqs, const int is_train, void *state) {
  int i;

  (void)is_train;
  assert_int_equal(num, 4);
  assert_int_equal(tags[0], 3);
  assert_int_equal(tags[3], 2);
  assert_int_equal(reqs[0], 1);
  multiply(arrays[0], arrays[3], *(const float *)state);
  for (i = 0; i < num; ++i) ok(MXNDArrayFree(arrays[i]));
  return 1;
}

static int operator_gone(void *state) {
  (void)state;
  --num_operators;
  return 1;
}

static int properties_gone(void *state) {
  (void)state;
  --num_properties;
  return 1;
}

static int depend(const int *out_grad, const int *in_data, const int *out_data, int *num_deps, int **deps,
                  void *state) {
  static int needed[1];

  (void)in_data;
  (void)out_data;
  (void)state;
  needed[0] = out_grad[0];
  *num_deps = 1;
  *deps = needed;
  return 1;
}

static int create(const char *context, int num, unsigned **shapes, const int *num_axes, const int *dtypes,
                  struct MXCallbackList *list, void *state) {
  static Callback callbacks[3];
  static void *contexts[3];

  assert_string_equal(context, "cpu(0)");
  assert_int_equal(num, 1);
  assert_int_equal(num_axes[0], 1);
  assert_int_equal(shapes[0][0], 2);
  assert_int_equal(dtypes[0], 0);
  callbacks[0] = CALLBACK(operator_gone);
  callbacks[1] = CALLBACK(forward);
  callbacks[2] = CALLBACK(backward);
  contexts[1] = contexts[2] = state;
  list->num_callbacks = 3;
  list->callbacks = callbacks;
  list->contexts = contexts;
  ++num_operators;
  return 1;
}

static float factors[2];

static int describe(const char *op_type, const int num, const char **keys, const char **values,
                    struct MXCallbackList *list) {
  static Callback callbacks[8];
  static void *contexts[2][8];
  static char *inputs[] = {"data", NULL}, *outputs[] = {"output", NULL}, *none[] = {NULL};
  int which;

  assert_string_equal(op_type, "scaled");
  assert_int_equal(num, 1);
  assert_string_equal(keys[0], "factor");
  which = atof(values[0]) < 0;
  factors[which] = (float)atof(values[0]);
  callbacks[0] = CALLBACK(properties_gone);
  callbacks[1] = CALLBACK(list_names);
  callbacks[2] = CALLBACK(list_names);
  callbacks[3] = CALLBACK(list_names);
  callbacks[4] = CALLBACK(infer_shape);
  callbacks[5] = CALLBACK(depend);
  callbacks[6] = CALLBACK(create);
  callbacks[7] = CALLBACK(infer_type);
  contexts[which][1] = inputs;
  contexts[which][2] = outputs;
  contexts[which][3] = none;
  contexts[which][6] = &factors[which];
  list->num_callbacks = 8;
  list->callbacks = callbacks;
  list->contexts = contexts[which];
  ++num_properties;
  return 1;
}

static NDArrayHandle scaled(NDArrayHandle x, const char *factor, int expected_answer) {
  const char *keys[] = {"op_type", "factor"}, *values[] = {"scaled", "0"};
  NDArrayHandle *outputs = NULL;
  OpHandle op = NULL;
  int num = 0;

  values[1] = factor;
  ok(NNGetOpHandle("Custom", &op));
  assert_int_equal(MXImperativeInvoke(op, 1, &x, &num, &outputs, 2, keys, values), expected_answer);
  return expected_answer == 0 ? outputs[0] : NULL;
}

/* Applied to an array it runs the host's forward, and its backward in a recorded graph; then the operator is released.
 */
static void operators_of_the_host_run(void **state) {
  const float values[] = {1, 2}, tripled[] = {3, 6}, gradient_values[] = {3, 3};
  NDArrayHandle x = row_of(values, 2), gradient = row_of(values, 2), y;
  uint32_t req = 1;

  (void)state;
  ok(MXCustomOpRegister("scaled", describe));
  ok(MXAutogradMarkVariables(1, &x, &req, &gradient));
  take_floats(scaled(x, "3", 0), tripled, 2);
  ok(MXAutogradSetIsRecording(1, NULL));
  y = scaled(x, "3", 0);
  ok(MXAutogradSetIsRecording(0, NULL));
  assert_floats(y, tripled, 2);
  ok(MXAutogradBackward(1, &y, NULL, 0));
  assert_floats(gradient, gradient_values, 2);
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(gradient));
  ok(MXNDArrayFree(x));
  assert_int_equal(num_properties, 1); /* one for these parameters */
  assert_int_equal(num_operators, 0);
  assert_int_equal(num_forwards, 2);
}

/* A forward that fails is an error of the call. */
static void failures_of_the_host_are_errors(void **state) {
  const float values[] = {1, 2};
  NDArrayHandle x = row_of(values, 2);

  (void)state;
  ok(MXCustomOpRegister("scaled", describe));
  scaled(x, "-1", -1);
  assert_true(strlen(MXGetLastError()) > 0);
  ok(MXNDArrayFree(x));
  fails(MXCustomOpRegister("scaled", NULL), "creator is NULL");
}

/* Recording makes the thread's tape, which lives as long as the thread: before the handles of a test are counted. */
static int make_tape(void **state) {
  const float value = 1;
  NDArrayHandle x = row_of(&value, 1), gradient = row_of(&value, 1), *outputs = NULL, y;
  uint32_t req = 1;
  OpHandle op = NULL;
  int num = 0;

  (void)state;
  ok(NNGetOpHandle("square", &op));
  ok(MXAutogradMarkVariables(1, &x, &req, &gradient));
  ok(MXAutogradSetIsRecording(1, NULL));
  ok(MXImperativeInvoke(op, 1, &x, &num, &outputs, 0, NULL, NULL));
  ok(MXAutogradSetIsRecording(0, NULL));
  y = outputs[0];
  ok(MXNDArrayFree(y));
  ok(MXNDArrayFree(gradient));
  ok(MXNDArrayFree(x));
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(operators_of_the_host_run), TEST(failures_of_the_host_are_errors)};

  return cmocka_run_group_tests(tests, make_tape, NULL);
}
