/* SPDX-License-Identifier: Apache-2.0 */
/* Executors: binding to given and to new arrays, passes, reshaping, monitors. */
#include "mxnet_test.h"

static SymbolHandle compose(const char *op, const char *name, const char *key, const char *value, SymbolHandle *inputs,
                            uint32_t num_inputs) {
  OpHandle handle = NULL;
  SymbolHandle symbol = NULL;

  ok(NNGetOpHandle(op, &handle));
  ok(MXSymbolCreateAtomicSymbol(handle, key ? 1 : 0, &key, &value, &symbol));
  ok(MXSymbolCompose(symbol, name, num_inputs, NULL, inputs));
  return symbol;
}

/* y = a * b */
static SymbolHandle product(void) {
  SymbolHandle in[2], y;

  ok(MXSymbolCreateVariable("a", &in[0]));
  ok(MXSymbolCreateVariable("b", &in[1]));
  y = compose("elemwise_mul", "y", NULL, NULL, in, 2);
  ok(MXSymbolFree(in[0]));
  ok(MXSymbolFree(in[1]));
  return y;
}

static NDArrayHandle output_of(ExecutorHandle executor) {
  NDArrayHandle *outputs = NULL;
  uint32_t num = 0;

  ok(MXExecutorOutputs(executor, &num, &outputs));
  assert_int_equal(num, 1);
  return outputs[0];
}

/* Forward reads the bound arrays, backward writes or adds the gradients that were asked for. */
static void bound_arrays_are_read_and_written(void **state) {
  const float a[] = {1, 2}, b[] = {3, 4}, y[] = {3, 8}, ones[] = {1, 1}, sum[] = {4, 5};
  SymbolHandle symbol = product();
  NDArrayHandle args[2], grads[2] = {NULL, NULL}, head;
  uint32_t reqs[] = {3, 0};
  ExecutorHandle executor = NULL;

  (void)state;
  args[0] = row_of(a, 2);
  args[1] = row_of(b, 2);
  grads[0] = row_of(ones, 2);
  head = row_of(ones, 2);
  ok(MXExecutorBindEX(symbol, 1, 0, 0, NULL, NULL, NULL, 2, args, grads, reqs, 0, NULL, NULL, &executor));
  ok(MXExecutorForward(executor, 1));
  take_floats(output_of(executor), y, 2);
  ok(MXExecutorBackward(executor, 1, &head));
  assert_floats(grads[0], sum, 2);
  ok(MXNDArraySyncCopyFromCPU(args[0], ones, 2));
  ok(MXExecutorForward(executor, 0));
  take_floats(output_of(executor), b, 2);
  fails(MXExecutorBackward(executor, 1, &symbol), "an NDArray");
  ok(MXExecutorFree(executor));
  fails(MXExecutorForward(executor, 0), "freed");
  fails(MXExecutorBindEX(symbol, 1, 0, 0, NULL, NULL, NULL, 1, args, grads, reqs, 0, NULL, NULL, &executor),
        "expected 2 arrays");
  ok(MXNDArrayFree(args[0]));
  ok(MXNDArrayFree(args[1]));
  ok(MXNDArrayFree(grads[0]));
  ok(MXNDArrayFree(head));
  ok(MXSymbolFree(symbol));
}

struct SimpleBound {
  NDArrayHandle args[2], grads[2];
  ExecutorHandle executor;
};

static struct SimpleBound simple_bind(SymbolHandle symbol, int length) {
  const char *names[] = {"a"}, *req = "write";
  const uint32_t begins[] = {0, 1};
  NDArrayHandle *args = NULL, *grads = NULL, *aux = NULL;
  uint32_t num_args = 0, num_aux = 9;
  int no_pool = -1;
  struct SimpleBound bound;

  ok(MXExecutorSimpleBindEx(symbol, 1, 0, 0, NULL, NULL, NULL, 0, NULL, &req, 1, names, &length, begins, 0, NULL, NULL,
                            0, NULL, NULL, 0, NULL, &no_pool, NULL, NULL, NULL, NULL, &num_args, &args, &grads,
                            &num_aux, &aux, NULL, &bound.executor));
  assert_int_equal(num_args, 2);
  assert_int_equal(num_aux, 0);
  memcpy(bound.args, args, sizeof bound.args);
  memcpy(bound.grads, grads, sizeof bound.grads);
  return bound;
}

static void free_bound(struct SimpleBound *bound) {
  int i;

  for (i = 0; i < 2; ++i) ok(MXNDArrayFree(bound->args[i]));
  for (i = 0; i < 2; ++i) ok(MXNDArrayFree(bound->grads[i]));
  ok(MXExecutorFree(bound->executor));
}

/* A simple bind makes arrays of inferred shapes, and gradients. */
static void simple_bind_makes_arrays(void **state) {
  const float a[] = {1, 2, 3}, b[] = {4, 5, 6}, ones[] = {1, 1, 1};
  const int shape[] = {3};
  SymbolHandle symbol = product();
  struct SimpleBound bound = simple_bind(symbol, 3);
  NDArrayHandle head = row_of(ones, 3);

  (void)state;
  assert_shape(bound.args[1], shape, 1);
  ok(MXNDArraySyncCopyFromCPU(bound.args[0], a, 3));
  ok(MXNDArraySyncCopyFromCPU(bound.args[1], b, 3));
  ok(MXExecutorForward(bound.executor, 1));
  ok(MXExecutorBackwardEx(bound.executor, 1, &head, 1));
  assert_floats(bound.grads[0], b, 3);
  assert_floats(bound.grads[1], a, 3);
  ok(MXNDArrayFree(head));
  free_bound(&bound);
  ok(MXSymbolFree(symbol));
}

/* Arrays of a pool are used, and those that it lacks are added to it. */
static void simple_bind_shares_a_pool(void **state) {
  const char *names[] = {"a", "b"}, *req = "null", *pool_names[] = {"a"}, **updated = NULL;
  const uint32_t begins[] = {0, 1, 2};
  const int lengths[] = {2, 2};
  const float big[] = {7, 8, 9};
  NDArrayHandle *args = NULL, *grads = NULL, *aux = NULL, pool = row_of(big, 3), *updated_arrays = NULL, first, second;
  uint32_t num_args = 0, num_aux = 0, i;
  int num_pool = 1;
  SymbolHandle symbol = product();
  ExecutorHandle executor = NULL;

  (void)state;
  ok(MXExecutorSimpleBindEx(symbol, 1, 0, 0, NULL, NULL, NULL, 0, NULL, &req, 2, names, lengths, begins, 0, NULL, NULL,
                            0, NULL, NULL, 0, NULL, &num_pool, pool_names, &pool, &updated, &updated_arrays, &num_args,
                            &args, &grads, &num_aux, &aux, NULL, &executor));
  assert_int_equal(num_pool, 2);
  assert_string_equal(updated[0], "a");
  assert_string_equal(updated[1], "b");
  for (i = 0; i < 2; ++i) ok(MXNDArrayFree(updated_arrays[i]));
  first = args[0];
  second = args[1];
  assert_null(grads[0]);
  take_floats(first, big, 2); /* the first part of the pool's array */
  ok(MXNDArrayFree(second));
  ok(MXNDArrayFree(pool));
  ok(MXExecutorFree(executor));
  ok(MXSymbolFree(symbol));
}

/* A reshaped executor has arrays of the new shape. */
static void reshape_makes_an_executor(void **state) {
  const char *names[] = {"a", "b"};
  const uint32_t begins[] = {0, 1, 2};
  const int lengths[] = {2, 2}, shape[] = {2};
  SymbolHandle symbol = product();
  struct SimpleBound bound = simple_bind(symbol, 3), reshaped;
  NDArrayHandle *args = NULL, *grads = NULL, *aux = NULL;
  uint32_t num_args = 0, num_aux = 0;

  (void)state;
  ok(MXExecutorReshapeEx(0, 0, 1, 0, 0, NULL, NULL, NULL, 2, names, lengths, begins, &num_args, &args, &grads, &num_aux,
                         &aux, bound.executor, &reshaped.executor));
  assert_int_equal(num_args, 2);
  memcpy(reshaped.args, args, sizeof reshaped.args);
  memcpy(reshaped.grads, grads, sizeof reshaped.grads);
  assert_shape(reshaped.args[0], shape, 1);
  free_bound(&bound);
  ok(MXExecutorForward(reshaped.executor, 1));
  free_bound(&reshaped);
  ok(MXSymbolFree(symbol));
}

struct Seen {
  char names[256];
  int num;
};

static void note(const char *name, NDArrayHandle array, void *user_data) {
  struct Seen *const seen = user_data;

  strcat(seen->names, name);
  strcat(seen->names, " ");
  ++seen->num;
  ok(MXNDArrayFree(array)); /* the callback owns it */
}

/* A monitor sees each output, and with all also the inputs; its handles are its own. */
static void monitors_see_outputs(void **state) {
  SymbolHandle symbol = product();
  struct SimpleBound bound = simple_bind(symbol, 3);
  struct Seen seen = {"", 0};

  (void)state;
  ok(MXExecutorSetMonitorCallback(bound.executor, note, &seen));
  ok(MXExecutorForward(bound.executor, 0));
  assert_string_equal(seen.names, "y_output ");
  ok(MXExecutorSetMonitorCallbackEX(bound.executor, note, &seen, true));
  ok(MXExecutorForward(bound.executor, 0));
  assert_string_equal(seen.names, "y_output a y_lhs b y_rhs y_output ");
  ok(MXExecutorSetMonitorCallback(bound.executor, NULL, NULL));
  ok(MXExecutorForward(bound.executor, 0));
  assert_int_equal(seen.num, 6);
  free_bound(&bound);
  ok(MXSymbolFree(symbol));
}

/* The description ends with the lines that frontends read memory from. */
static void descriptions_end_with_memory(void **state) {
  SymbolHandle symbol = product(), bound_symbol = NULL;
  struct SimpleBound bound = simple_bind(symbol, 3);
  const char *text = NULL, *end = "TempSpace resource requested\n";

  (void)state;
  ok(MXExecutorPrint(bound.executor, &text));
  assert_non_null(strstr(text, "\nTotal "));
  assert_true(strlen(text) > strlen(end));
  assert_string_equal(text + strlen(text) - strlen(end), end);
  ok(MXExecutorGetOptimizedSymbol(bound.executor, &bound_symbol));
  ok(MXSymbolFree(bound_symbol));
  free_bound(&bound);
  ok(MXSymbolFree(symbol));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(bound_arrays_are_read_and_written), TEST(simple_bind_makes_arrays), TEST(simple_bind_shares_a_pool),
      TEST(reshape_makes_an_executor),         TEST(monitors_see_outputs),     TEST(descriptions_end_with_memory),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
