/* SPDX-License-Identifier: Apache-2.0 */
/* Executors over the C ABI: bound to given or new arrays, run whole and step by step, reshaped, monitored. */
#include <pthread.h>

#include "support/boundary.h"

static const int64_t three = 3, five = 5;

/* product = a * b, then shifted = product + 1. */
static cohort_symbol *product_network(void) {
  const char *const key = "scalar", *const value = "1";
  cohort_symbol *inputs[2] = {NULL, NULL}, *product = NULL, *shifted = NULL;

  ok(cohort_symbol_variable("a", NULL, NULL, 0, &inputs[0]));
  ok(cohort_symbol_variable("b", NULL, NULL, 0, &inputs[1]));
  ok(cohort_symbol_create("elemwise_mul", "product", NULL, NULL, 0, inputs, NULL, 2, &product));
  ok(cohort_symbol_create("_plus_scalar", "shifted", &key, &value, 1, &product, NULL, 1, &shifted));
  cohort_symbol_free(inputs[0]);
  cohort_symbol_free(inputs[1]);
  cohort_symbol_free(product);
  return shifted;
}

/* Binds that network by shape, with gradients as grad_req says. */
static cohort_executor *bound(int64_t length, const char *grad_req) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *symbol = product_network();
  cohort_descs *known = one_desc("a", &length, 1);
  cohort_executor *executor = NULL;

  options.grad_req = grad_req;
  ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor));
  cohort_symbol_free(symbol);
  cohort_descs_free(known);
  return executor;
}

static cohort_ndarray *array_of(const cohort_executor *executor, int32_t list, const char *name) {
  cohort_ndarray *array = NULL;

  ok(cohort_executor_array_named(executor, list, name, &array));
  return array;
}

static void set(cohort_executor *executor, const char *name, const float *values, size_t num) {
  cohort_ndarray *array = array_of(executor, COHORT_EXECUTOR_ARGS, name);

  ok(cohort_ndarray_write(array, values, num * sizeof(float)));
  cohort_ndarray_free(array);
}

static void assert_output(const cohort_executor *executor, const float *values, size_t num) {
  cohort_ndarray *array = NULL;

  ok(cohort_executor_array(executor, COHORT_EXECUTOR_OUTPUTS, 0, &array));
  assert_floats(array, values, num);
  cohort_ndarray_free(array);
}

/* The next forward pass reads what the caller has written into its own arrays; gradients are written into its
 * arrays. */
static void given_arrays_are_referenced(void **state) {
  const float a[] = {1, 2, 3}, b[] = {10, 20, 30}, ones[] = {1, 1, 1};
  const int32_t reqs[] = {COHORT_GRAD_WRITE, COHORT_GRAD_ADD};
  cohort_symbol *symbol = product_network();
  cohort_ndarray *args[2], *grads[2], *head = floats(ones, &three, 1);
  cohort_executor *executor = NULL;
  int32_t req = -1;

  (void)state;
  args[0] = floats(a, &three, 1);
  args[1] = floats(b, &three, 1);
  grads[0] = floats(ones, &three, 1);
  grads[1] = floats(ones, &three, 1);
  ok(cohort_executor_bind(symbol, NULL, args, 2, grads, reqs, NULL, 0, NULL, &executor));
  cohort_symbol_free(symbol);
  assert_output(executor, (const float[]){0, 0, 0}, 3);
  ok(cohort_executor_forward(executor, 1));
  assert_output(executor, (const float[]){11, 41, 91}, 3);
  ok(cohort_ndarray_fill(args[0], 2));
  ok(cohort_executor_forward(executor, 1));
  assert_output(executor, (const float[]){21, 41, 61}, 3);
  ok(cohort_executor_backward(executor, &head, 1, 1));
  assert_floats(grads[0], b, 3);
  assert_floats(grads[1], (const float[]){3, 3, 3}, 3);
  ok(cohort_executor_grad_req(executor, 1, &req));
  assert_int_equal(req, COHORT_GRAD_ADD);
  cohort_executor_free(executor);
  assert_floats(args[0], (const float[]){2, 2, 2}, 3);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);
  cohort_ndarray_free(grads[0]);
  cohort_ndarray_free(grads[1]);
  cohort_ndarray_free(head);
}

/* Without gradient arrays no gradients are computed, and none for an argument whose array is missing. */
static void missing_gradients_are_null(void **state) {
  const float a[] = {1, 2, 3};
  cohort_symbol *symbol = product_network();
  cohort_ndarray *args[2], *grads[2] = {NULL, NULL}, *got = NULL;
  cohort_executor *executor = NULL;
  int32_t req = -1;
  size_t num = 0;

  (void)state;
  args[0] = args[1] = floats(a, &three, 1);
  ok(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor));
  ok(cohort_executor_num_arrays(executor, COHORT_EXECUTOR_GRADS, &num));
  assert_int_equal(num, 2);
  ok(cohort_executor_array(executor, COHORT_EXECUTOR_GRADS, 1, &got));
  assert_null(got);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  assert_output(executor, (const float[]){2, 5, 10}, 3);
  cohort_executor_free(executor);
  grads[1] = floats(a, &three, 1);
  ok(cohort_executor_bind(symbol, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor));
  ok(cohort_executor_grad_req(executor, 0, &req));
  assert_int_equal(req, COHORT_GRAD_NULL);
  ok(cohort_executor_grad_req(executor, 1, &req));
  assert_int_equal(req, COHORT_GRAD_WRITE);
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(grads[1]);
}

/* Arrays that do not fit are refused at bind, each with its own reason. */
static void misfits_are_refused_at_bind(void **state) {
  const float a[] = {1, 2, 3, 4, 5};
  const cohort_context cpu1 = {COHORT_DEVICE_CPU, 1};
  const int32_t in_place[] = {2, 1};
  cohort_symbol *symbol = product_network();
  cohort_ndarray *args[3], *grads[2], *longer = floats(a, &five, 1), *doubles = NULL, *elsewhere = NULL;
  cohort_executor *executor = NULL;

  (void)state;
  args[0] = args[1] = args[2] = floats(a, &three, 1);
  grads[0] = grads[1] = args[0];
  ok(cohort_ndarray_cast(args[0], COHORT_DTYPE_FLOAT64, &doubles));
  ok(cohort_ndarray_copy(args[0], &cpu1, &elsewhere));
  fails(cohort_executor_bind(symbol, NULL, args, 1, NULL, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "2");
  fails(cohort_executor_bind(symbol, NULL, args, 3, NULL, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "3");
  fails(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, args, 1, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_executor_bind(symbol, NULL, args, 2, grads, in_place, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "2");
  args[1] = longer;
  fails(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor), COHORT_ERROR_SHAPE,
        "product");
  args[1] = doubles;
  fails(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor), COHORT_ERROR_DTYPE,
        "product");
  args[1] = elsewhere;
  fails(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor), COHORT_ERROR_DEVICE,
        "cpu(1)");
  args[1] = NULL;
  fails(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "args[1]");
  args[1] = args[0];
  grads[1] = longer;
  fails(cohort_executor_bind(symbol, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor), COHORT_ERROR_SHAPE, "b");
  grads[1] = doubles;
  fails(cohort_executor_bind(symbol, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor), COHORT_ERROR_DTYPE, "b");
  assert_null(executor);
  cohort_symbol_free(symbol);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(longer);
  cohort_ndarray_free(doubles);
  cohort_ndarray_free(elsewhere);
}

/* Binding by shape allocates all arrays, zeroed, on the requested context. */
static void bound_by_shape(void **state) {
  const cohort_context cpu3 = {COHORT_DEVICE_CPU, 3};
  cohort_symbol *symbol = product_network();
  cohort_descs *known = one_desc("b", &three, 1);
  cohort_executor *executor = NULL;
  cohort_ndarray *array = NULL;
  cohort_context found = {0, 0};
  cohort_arrays *grads = NULL;
  const char *name = NULL;

  (void)state;
  ok(cohort_executor_simple_bind(symbol, &cpu3, known, NULL, &executor));
  ok(cohort_executor_context(executor, &found));
  assert_int_equal(found.device_id, 3);
  array = array_of(executor, COHORT_EXECUTOR_ARGS, "a");
  assert_floats(array, (const float[]){0, 0, 0}, 3);
  ok(cohort_ndarray_context(array, &found));
  assert_int_equal(found.device_id, 3);
  cohort_ndarray_free(array);
  ok(cohort_executor_arrays(executor, COHORT_EXECUTOR_GRADS, &grads));
  ok(cohort_arrays_name(grads, 0, &name));
  assert_string_equal(name, "a");
  ok(cohort_arrays_get(grads, 0, &array));
  assert_null(array);
  ok(cohort_executor_name(executor, COHORT_EXECUTOR_OUTPUTS, 0, &name));
  assert_string_equal(name, "shifted_output");
  cohort_arrays_free(grads);
  cohort_executor_free(executor);
  executor = NULL;
  fails(cohort_executor_simple_bind(symbol, NULL, NULL, NULL, &executor), COHORT_ERROR_SHAPE, "a");
  assert_null(executor);
  cohort_symbol_free(symbol);
  cohort_descs_free(known);
}

/* A forward pass run node by node, also through nodes that a whole pass fuses, gives the same result, and backward may
 * follow. */
static void steps_add_up_to_a_pass(void **state) {
  const float a[] = {1, 2, 3}, b[] = {4, 5, 6}, ones[] = {1, 1, 1};
  cohort_executor *executor = bound(3, "write");
  cohort_ndarray *head = floats(ones, &three, 1), *grad = NULL;
  int32_t step, left = -1;

  (void)state;
  set(executor, "a", a, 3);
  set(executor, "b", b, 3);
  for (step = 0, left = 1; left > 0; ++step) {
    ok(cohort_executor_partial_forward(executor, 1, step, &left));
    assert_int_equal(left, 3 - step);
  }
  assert_int_equal(step, 4);
  assert_output(executor, (const float[]){5, 11, 19}, 3);
  ok(cohort_executor_backward(executor, &head, 1, 1));
  grad = array_of(executor, COHORT_EXECUTOR_GRADS, "a");
  assert_floats(grad, b, 3);
  ok(cohort_executor_partial_forward(executor, 1, 99, &left));
  assert_int_equal(left, 0);
  left = -1;
  ok(cohort_executor_partial_forward(executor, 1, -1, &left));
  assert_int_equal(left, 0);
  cohort_ndarray_free(head);
  cohort_ndarray_free(grad);
  cohort_executor_free(executor);
}

/* Backward is refused without forward, with too many head gradients, or without one that is needed. */
static void backward_is_checked(void **state) {
  const float ones[] = {1, 1, 1, 1, 1};
  cohort_executor *executor = bound(3, "write");
  cohort_ndarray *heads[2], *longer = floats(ones, &five, 1);

  (void)state;
  heads[0] = heads[1] = floats(ones, &three, 1);
  fails(cohort_executor_backward(executor, heads, 1, 1), COHORT_ERROR_STATE, "forward");
  ok(cohort_executor_forward(executor, 1));
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_INVALID_ARGUMENT, "shifted");
  fails(cohort_executor_backward(executor, heads, 2, 1), COHORT_ERROR_INVALID_ARGUMENT, "2");
  fails(cohort_executor_backward(executor, &longer, 1, 1), COHORT_ERROR_SHAPE, "(5,)");
  ok(cohort_executor_backward(executor, heads, 1, 1));
  ok(cohort_executor_wait(executor));
  ok(cohort_wait_all());
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(longer);
  cohort_executor_free(executor);
}

/* Named inputs are all checked before any is copied. */
static void inputs_are_checked_first(void **state) {
  const float ones[] = {1, 1, 1, 1, 1};
  cohort_executor *executor = bound(3, NULL);
  cohort_ndarray *fits = floats(ones, &three, 1), *longer = floats(ones, &five, 1), *a;
  cohort_arrays *inputs = NULL;

  (void)state;
  ok(cohort_arrays_create(&inputs));
  ok(cohort_arrays_add(inputs, "a", fits));
  ok(cohort_arrays_add(inputs, "b", longer));
  fails(cohort_executor_set_inputs(executor, inputs), COHORT_ERROR_SHAPE, "b");
  ok(cohort_arrays_set(inputs, "b", NULL));
  fails(cohort_executor_set_inputs(executor, inputs), COHORT_ERROR_INVALID_ARGUMENT, "'b' has no array");
  a = array_of(executor, COHORT_EXECUTOR_ARGS, "a");
  assert_floats(a, (const float[]){0, 0, 0}, 3);
  ok(cohort_arrays_set(inputs, "b", fits));
  ok(cohort_executor_set_inputs(executor, inputs));
  assert_floats(a, ones, 3);
  cohort_ndarray_free(a);
  cohort_ndarray_free(fits);
  cohort_ndarray_free(longer);
  cohort_arrays_free(inputs);
  cohort_executor_free(executor);
}

/* A smaller executor shares the memory of the larger one, in whichever order they are freed. */
static void reshaped_executors_share_memory(void **state) {
  const float a[] = {1, 2, 3, 4, 5}, b[] = {1, 1, 1, 1, 1};
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  const cohort_context cpu1 = {COHORT_DEVICE_CPU, 1};
  cohort_executor *executor = bound(5, NULL), *smaller = NULL, *larger = NULL;
  cohort_descs *known = one_desc("a", &three, 1), *more = NULL;
  const int64_t nine = 9;

  (void)state;
  set(executor, "a", a, 5);
  set(executor, "b", b, 5);
  fails(cohort_executor_reshape(executor, known, NULL, &smaller), COHORT_ERROR_SHAPE, "b");
  options.partial_shaping = 1;
  ok(cohort_executor_reshape(executor, known, &options, &smaller));
  ok(cohort_executor_forward(smaller, 0));
  assert_output(smaller, (const float[]){2, 3, 4}, 3);
  more = one_desc("a", &nine, 1);
  fails(cohort_executor_reshape(executor, more, &options, &larger), COHORT_ERROR_SHAPE, "a");
  options.allow_up_sizing = 1;
  ok(cohort_executor_reshape(executor, more, &options, &larger));
  cohort_executor_free(executor);
  ok(cohort_executor_forward(larger, 0));
  assert_output(larger, (const float[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, 9);
  ok(cohort_executor_forward(smaller, 0));
  assert_output(smaller, (const float[]){2, 3, 4}, 3);
  options.context = &cpu1;
  fails(cohort_executor_reshape(smaller, known, &options, &larger), COHORT_ERROR_DEVICE, context_name(0));
  cohort_executor_free(smaller);
  cohort_executor_free(larger);
  cohort_descs_free(known);
  cohort_descs_free(more);
}

/* Inputs that are pooled by name are reused where they are large enough, and new ones are added to the pool. */
static void shared_data_is_read_and_updated(void **state) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *symbol = product_network();
  cohort_descs *known = one_desc("a", &five, 1), *fewer = one_desc("a", &three, 1);
  cohort_executor *first = NULL, *second = NULL;
  cohort_ndarray *ours = NULL, *theirs = NULL;
  void *before = NULL, *after = NULL;
  size_t num = 77, index = 0;

  (void)state;
  ok(cohort_arrays_create(&options.shared_data));
  ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &first));
  ok(cohort_arrays_num(options.shared_data, &num));
  assert_int_equal(num, 2);
  ok(cohort_arrays_find(options.shared_data, "b", &index));
  ok(cohort_executor_simple_bind(symbol, NULL, fewer, &options, &second));
  ours = array_of(first, COHORT_EXECUTOR_ARGS, "a");
  theirs = array_of(second, COHORT_EXECUTOR_ARGS, "a");
  before = address_of(ours);
  after = address_of(theirs);
  assert_ptr_equal(before, after);
  cohort_ndarray_free(ours);
  cohort_ndarray_free(theirs);
  cohort_executor_free(second);
  second = NULL;
  ok(cohort_arrays_set(options.shared_data, "a", NULL));
  fails(cohort_executor_simple_bind(symbol, NULL, fewer, &options, &second), COHORT_ERROR_INVALID_ARGUMENT,
        "'a' has no array");
  assert_null(second);
  cohort_arrays_free(options.shared_data);
  cohort_executor_free(first);
  cohort_executor_free(second);
  cohort_symbol_free(symbol);
  cohort_descs_free(known);
  cohort_descs_free(fewer);
}

typedef struct watched {
  char names[256];
  cohort_ndarray *kept; /* of product_output */
} watched;

static void watch(const char *name, cohort_ndarray *array, void *user_data) {
  watched *to = user_data;

  snprintf(to->names + strlen(to->names), sizeof(to->names) - strlen(to->names), "%s ", name);
  if (strcmp(name, "product_output") == 0 && !to->kept) ok(cohort_ndarray_share(array, &to->kept));
}

/* A monitor sees each operator's whole output under the symbol's names, and may keep the arrays it is given. */
static void monitors_see_every_output(void **state) {
  const float a[] = {1, 2, 3}, b[] = {4, 5, 6};
  cohort_executor *executor = bound(3, NULL);
  watched seen = {"", NULL};

  (void)state;
  set(executor, "a", a, 3);
  set(executor, "b", b, 3);
  ok(cohort_executor_set_monitor(executor, watch, &seen, 0));
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(seen.names, "product_output shifted_output ");
  assert_floats(seen.kept, (const float[]){4, 10, 18}, 3);
  assert_int_equal(cohort_live_handles(), 2);
  seen.names[0] = '\0';
  ok(cohort_executor_set_monitor(executor, watch, &seen, 1));
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(seen.names, "a product_lhs b product_rhs product_output shifted_input0 shifted_output ");
  seen.names[0] = '\0';
  ok(cohort_executor_set_monitor(executor, NULL, NULL, 0));
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(seen.names, "");
  assert_output(executor, (const float[]){5, 11, 19}, 3);
  cohort_ndarray_free(seen.kept);
  cohort_executor_free(executor);
}

/* The debug text ends like MXNet's, and lives as long as the handle. */
static void debug_text_ends_as_mxnets(void **state) {
  cohort_executor *executor = bound(3, "write");
  const char *text = NULL, *total = NULL;

  (void)state;
  ok(cohort_executor_debug_text(executor, &text));
  total = strstr(text, "Total ");
  assert_non_null(total);
  assert_non_null(strstr(total, " MB allocated\nTotal 11 TempSpace resource requested"));
  cohort_executor_free(executor);
}

/* Work that fails is reported once, by the call that waits for it, with operator and node; its output is invalid until
 * it is computed again, and the executor stays usable. */
static void failed_work_comes_out_at_the_wait(void **state) {
  const float a[] = {1, 2, 3}, b[] = {4, 5, 6};
  cohort_executor *executor;
  cohort_ndarray *output = NULL;
  float values[3];

  (void)state;
  assert_int_equal(setenv("COHORT_FAULT", "shifted", 1), 0);
  executor = bound(3, NULL);
  set(executor, "a", a, 3);
  set(executor, "b", b, 3);
  ok(cohort_executor_array(executor, COHORT_EXECUTOR_OUTPUTS, 0, &output));
  ok(cohort_executor_forward(executor, 0));
  fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "shifted");
  ok(cohort_executor_wait(executor));
  fails(cohort_ndarray_read(output, values, sizeof(values)), COHORT_ERROR_EXECUTION, "shifted");
  ok(cohort_executor_forward(executor, 0));
  /* cohort_wait_all() reports the error too, but leaves it to be reported to the executor's own caller. */
  fails(cohort_wait_all(), COHORT_ERROR_EXECUTION, "shifted");
  fails(cohort_wait_all(), COHORT_ERROR_EXECUTION, "shifted");
  fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "shifted");
  ok(cohort_wait_all());
  cohort_executor_free(executor);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  executor = bound(3, NULL);
  set(executor, "a", a, 3);
  set(executor, "b", b, 3);
  ok(cohort_executor_forward(executor, 0));
  assert_output(executor, (const float[]){5, 11, 19}, 3);
  cohort_ndarray_free(output);
  cohort_executor_free(executor);
}

typedef struct returned {
  pthread_t thread;
  int num;
} returned;

static void note_return(void *data, void *user_data) {
  returned *note = user_data;

  (void)data;
  note->thread = pthread_self();
  ++note->num;
}

/* Memory that queued work holds is given back inside one of the caller's own calls, in whatever order handles are
 * freed. */
static void lent_memory_comes_back_inside_a_call(void **state) {
  enum { NUM = 1 << 16 };
  static float a[NUM], b[NUM];
  const int64_t length = NUM;
  int round;

  (void)state;
  only_on_cpus();
  for (round = 0; round < 20; ++round) {
    returned note = {pthread_self(), 0};
    cohort_symbol *symbol = product_network();
    cohort_ndarray *args[2] = {NULL, NULL};
    cohort_executor *executor = NULL;

    ok(cohort_ndarray_wrap(a, &length, 1, COHORT_DTYPE_FLOAT32, NULL, note_return, &note, &args[0]));
    ok(cohort_ndarray_wrap(b, &length, 1, COHORT_DTYPE_FLOAT32, NULL, note_return, &note, &args[1]));
    ok(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor));
    ok(cohort_executor_forward(executor, 0));
    cohort_ndarray_free(args[0]);
    cohort_symbol_free(symbol);
    cohort_ndarray_free(args[1]);
    assert_int_equal(note.num, 0);
    cohort_executor_free(executor);
    ok(cohort_wait_all()); /* this call frees at the latest what a worker released last */
    assert_int_equal(note.num, 2);
    assert_true(pthread_equal(note.thread, pthread_self()));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(given_arrays_are_referenced),
      TEST(missing_gradients_are_null),
      TEST(misfits_are_refused_at_bind),
      TEST(bound_by_shape),
      TEST(steps_add_up_to_a_pass),
      TEST(backward_is_checked),
      TEST(inputs_are_checked_first),
      TEST(reshaped_executors_share_memory),
      TEST(shared_data_is_read_and_updated),
      TEST(monitors_see_every_output),
      TEST(debug_text_ends_as_mxnets),
      TEST(failed_work_comes_out_at_the_wait),
      TEST(lent_memory_comes_back_inside_a_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
