/* SPDX-License-Identifier: Apache-2.0 */
/* Binding executors: to given arrays (EXE-01 to EXE-09), and to arrays allocated for them (EXE-12 to EXE-18). */
#include <stdio.h>

#include "support/executor_tests.h"

static cohort_symbol *product(void) {
  return node("elemwise_mul", "product", NO_ATTRS, INPUTS(variable("a"), variable("b")));
}

static cohort_symbol *normalised(void) {
  return node("BatchNorm", "bn", ATTRS("fix_gamma", "False"), INPUTS(linear("2")));
}

/* ---- given arrays ------------------------------------------------------------------------------------------------ */

/* EXE-01: arguments, gradients and auxiliary states go in list order, as many as the lists are long. */
static void arrays_are_given_in_list_order(void **state) {
  cohort_symbol *symbol = normalised(); /* data, fc_weight, bn_gamma, bn_beta; bn_moving_mean, bn_moving_var */
  cohort_ndarray *args[4], *grads[4] = {NULL, NULL, NULL, NULL}, *aux[2];
  cohort_executor *executor = NULL;
  size_t i;

  (void)state;
  args[0] = floats(SHAPE(1, 1), FLOATS(5));
  args[1] = floats(SHAPE(2, 1), FLOATS(1, 2));
  args[2] = floats(SHAPE(2), FLOATS(1, 1));
  args[3] = floats(SHAPE(2), FLOATS(0, 100));
  grads[3] = floats(SHAPE(2), FLOATS(0, 0));
  aux[0] = floats(SHAPE(2), FLOATS(5, 9));
  aux[1] = floats(SHAPE(2), FLOATS(1, 1));
  ok(cohort_executor_bind(symbol, NULL, args, 4, grads, NULL, aux, 2, NULL, &executor));
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 0, 100.9995f); /* (5 - 5, 10 - 9) over the root of 1.001, and beta */
  is_absent(grad_of(executor, "fc_weight"));
  assert_ptr_equal(address_free(grad_of(executor, "bn_beta")), address_free(grads[3]));
  cohort_executor_free(executor);
  executor = NULL;
  fails(cohort_executor_bind(symbol, NULL, args, 3, NULL, NULL, aux, 2, NULL, &executor), COHORT_ERROR_INVALID_ARGUMENT,
        "expected 4 arguments, found 3");
  fails(cohort_executor_bind(symbol, NULL, args, 4, NULL, NULL, aux, 1, NULL, &executor), COHORT_ERROR_INVALID_ARGUMENT,
        "expected 2 auxiliary states, found 1");
  fails(cohort_executor_bind(symbol, NULL, args, 4, NULL, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "expected 2 auxiliary states, found 0");
  assert_null(executor);
  for (i = 0; i < 4; ++i) cohort_ndarray_free(args[i]);
  cohort_ndarray_free(aux[0]);
  cohort_ndarray_free(aux[1]);
  cohort_symbol_free(symbol);
}

/* EXE-01: binding by name finds each argument in the caller's list; a missing one is named in the error, and extra
 * arrays in the list are ignored. */
static void arrays_by_name_are_found_or_missed_by_name(void **state) {
  cohort_symbol *symbol = product();
  cohort_arrays *given = named("a", floats(SHAPE(1), FLOATS(3)));
  cohort_ndarray *args[2];
  cohort_executor *executor = NULL;
  size_t i, at = 0;

  (void)state;
  add_named(given, "extra", floats(SHAPE(7), FLOATS(0, 0, 0, 0, 0, 0, 0)));
  fails(cohort_arrays_find(given, "b", &at), COHORT_ERROR_NAME, "'b'");
  add_named(given, "b", floats(SHAPE(1), FLOATS(4)));
  for (i = 0; i < 2; ++i) {
    const char *name = NULL;

    ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_ARGUMENTS, i, &name));
    ok(cohort_arrays_find(given, name, &at));
    ok(cohort_arrays_get(given, at, &args[i]));
  }
  ok(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor));
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 12);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);
  cohort_arrays_free(given);
  cohort_symbol_free(symbol);
  cohort_executor_free(executor);
}

/* EXE-03: an array that does not fit is refused; the error has the node, the input, the expected and the found
 * shape. */
static void a_misfit_is_refused_by_node_and_input(void **state) {
  cohort_symbol *symbol = regression("2"); /* data, fc_weight, label */
  cohort_ndarray *args[3], *doubles = NULL;
  cohort_executor *executor = NULL;
  cohort_error *error;

  (void)state;
  args[0] = counted(SHAPE(4, 3), 1);
  args[1] = counted(SHAPE(2, 5), 1);
  args[2] = counted(SHAPE(4, 2), 1);
  error = cohort_executor_bind(symbol, NULL, args, 3, NULL, NULL, NULL, 0, NULL, &executor);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_SHAPE);
  assert_string_equal(cohort_error_subject(error), "fc");
  assert_non_null(strstr(cohort_error_message(error), "weight"));
  assert_non_null(strstr(cohort_error_message(error), "(2, 5)"));
  assert_non_null(strstr(cohort_error_message(error), "(2, 3)"));
  cohort_error_free(error);
  cohort_ndarray_free(args[1]);
  args[1] = counted(SHAPE(2, 3), 1);
  ok(cohort_ndarray_cast(args[1], COHORT_DTYPE_FLOAT64, &doubles));
  cohort_ndarray_free(args[1]);
  args[1] = doubles;
  error = cohort_executor_bind(symbol, NULL, args, 3, NULL, NULL, NULL, 0, NULL, &executor);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_DTYPE);
  assert_string_equal(cohort_error_subject(error), "fc");
  assert_non_null(strstr(cohort_error_message(error), "input 1"));
  assert_non_null(strstr(cohort_error_message(error), "expected float32, found float64"));
  cohort_error_free(error);
  assert_null(executor);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);
  cohort_ndarray_free(args[2]);
  cohort_symbol_free(symbol);
}

/* EXE-04: an argument without a gradient array has no gradient, whatever grad_req says; grad_req null never writes the
 * array. */
static void null_gradients_are_not_written(void **state) {
  const int32_t reqs[] = {COHORT_GRAD_NULL, COHORT_GRAD_WRITE, COHORT_GRAD_WRITE};
  cohort_symbol *symbol = node("Concat", "both", ATTRS("dim", "0"), INPUTS(product(), variable("c")));
  cohort_ndarray *args[3], *grads[3], *head = floats(SHAPE(2), FLOATS(10, 1));
  cohort_executor *executor = NULL;
  int32_t req = -1;
  size_t i;

  (void)state;
  for (i = 0; i < 3; ++i) args[i] = floats(SHAPE(1), FLOATS(3));
  grads[0] = floats(SHAPE(1), FLOATS(77));
  grads[1] = floats(SHAPE(1), FLOATS(77));
  grads[2] = NULL;
  ok(cohort_executor_bind(symbol, NULL, args, 3, grads, reqs, NULL, 0, NULL, &executor));
  ok(cohort_executor_grad_req(executor, 2, &req));
  assert_int_equal(req, COHORT_GRAD_NULL);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, &head, 1, 1));
  holds_free(grads[0], 77);
  holds_free(grads[1], 30);
  for (i = 0; i < 3; ++i) cohort_ndarray_free(args[i]);
  cohort_ndarray_free(head);
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
}

/* EXE-05, EXE-06: gradients are checked at bind for shape, dtype and context; the error names the argument. */
static void gradients_are_checked_at_bind(void **state) {
  const cohort_context cpu1 = {COHORT_DEVICE_CPU, 1};
  const struct {
    int64_t length;
    int32_t dtype;
    const cohort_context *context;
    int32_t code;
    const char *words;
  } bad[] = {{2, COHORT_DTYPE_FLOAT32, NULL, COHORT_ERROR_SHAPE, "gradient of 'b': expected (3,), found (2,)"},
             {3, COHORT_DTYPE_FLOAT64, NULL, COHORT_ERROR_DTYPE, "gradient of 'b': expected float32, found float64"},
             {3, COHORT_DTYPE_FLOAT32, &cpu1, COHORT_ERROR_DEVICE, NULL}};
  cohort_symbol *symbol = product();
  cohort_ndarray *args[2], *grads[2] = {NULL, NULL};
  cohort_executor *executor = NULL;
  char expected[64];
  size_t i;

  (void)state;
  snprintf(expected, sizeof(expected), "'b' is on cpu(1), expected %s", context_name(0));
  args[0] = args[1] = floats(SHAPE(3), FLOATS(1, 2, 3));
  for (i = 0; i < COUNT(bad); ++i) {
    ok(cohort_ndarray_zeros(&bad[i].length, 1, bad[i].dtype, bad[i].context, &grads[1]));
    fails(cohort_executor_bind(symbol, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor), bad[i].code,
          bad[i].context ? expected : bad[i].words);
    cohort_ndarray_free(grads[1]);
  }
  ok(cohort_ndarray_copy(args[0], &cpu1, &args[1]));
  fails(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor), COHORT_ERROR_DEVICE,
        expected);
  assert_null(executor);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);
  cohort_symbol_free(symbol);
}

/* EXE-05: what one gradient writes another array may not hold: one of two gradients in one array would be lost.
 * Gradients that are added up may share one, and parts of a block that lie apart are arrays of their own. */
static void a_written_gradient_has_memory_of_its_own(void **state) {
  const cohort_grad_req add[] = {COHORT_GRAD_ADD, COHORT_GRAD_ADD}, mixed[] = {COHORT_GRAD_ADD, COHORT_GRAD_WRITE};
  const cohort_grad_req unwritten[] = {COHORT_GRAD_NULL, COHORT_GRAD_WRITE};
  cohort_symbol *const symbol = product();
  cohort_symbol *const twice = node("elemwise_mul", "product", NO_ATTRS, INPUTS(variable("a"), variable("a")));
  cohort_ndarray *const block = floats(SHAPE(3, 1), FLOATS(0, 0, 0));
  cohort_ndarray *args[2], *grads[2], *parts[3], *flat[2];
  cohort_executor *executor = NULL;
  size_t i;

  (void)state;
  args[0] = floats(SHAPE(1), FLOATS(2));
  args[1] = floats(SHAPE(1), FLOATS(5));
  grads[0] = grads[1] = floats(SHAPE(1), FLOATS(0));
  fails(cohort_executor_bind(symbol, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT,
        "gradient of 'b' with grad_req 'write': expected memory of its own, found that of gradient of 'a'");
  fails(cohort_executor_bind(symbol, NULL, args, 2, grads, mixed, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "gradient of 'b' with grad_req 'write'");
  fails(cohort_executor_bind(twice, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "gradient of 'a' with grad_req 'write'");
  assert_null(executor);
  ok(cohort_executor_bind(symbol, NULL, args, 2, grads, unwritten, NULL, 0, NULL, &executor));
  cohort_executor_free(executor);
  ok(cohort_executor_bind(symbol, NULL, args, 2, grads, add, NULL, 0, NULL, &executor));
  ok(cohort_executor_forward(executor, 1));
  {
    cohort_ndarray *head = floats(SHAPE(1), FLOATS(1));

    ok(cohort_executor_backward(executor, &head, 1, 1));
    cohort_ndarray_free(head);
  }
  cohort_executor_free(executor);
  executor = NULL;
  holds(grads[0], 7);
  cohort_ndarray_free(grads[0]);

  grads[0] = NULL;
  grads[1] = args[1];
  fails(cohort_executor_bind(symbol, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "found that of argument 'b'");
  grads[1] = args[0];
  fails(cohort_executor_bind(symbol, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT,
        "gradient of 'b' with grad_req 'write': expected memory of its own, found that of argument 'a'");
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);

  ok(cohort_ndarray_slice(block, 0, 2, &grads[0]));
  ok(cohort_ndarray_slice(block, 1, 3, &grads[1]));
  for (i = 0; i < 2; ++i) args[i] = floats(SHAPE(2, 1), FLOATS(1, 2));
  fails(cohort_executor_bind(symbol, NULL, args, 2, grads, NULL, NULL, 0, NULL, &executor),
        COHORT_ERROR_INVALID_ARGUMENT, "gradient of 'b' with grad_req 'write'");
  for (i = 0; i < 2; ++i) {
    cohort_ndarray_free(grads[i]);
    cohort_ndarray_free(args[i]);
  }

  for (i = 0; i < 3; ++i) ok(cohort_ndarray_slice(block, (int64_t)i, (int64_t)i + 1, &parts[i]));
  for (i = 0; i < 2; ++i) flat[i] = floats(SHAPE(1, 1), FLOATS(3));
  args[0] = parts[0];
  args[1] = flat[1];
  ok(cohort_executor_bind(symbol, NULL, args, 2, &parts[1], NULL, NULL, 0, NULL, &executor));
  cohort_executor_free(executor);
  for (i = 0; i < 3; ++i) cohort_ndarray_free(parts[i]);
  for (i = 0; i < 2; ++i) cohort_ndarray_free(flat[i]);
  cohort_ndarray_free(block);
  cohort_symbol_free(symbol);
  cohort_symbol_free(twice);
}

/* EXE-07: a head that is a variable is the argument's own array, and its gradient is the head gradient. */
static void a_variable_may_be_a_head(void **state) {
  cohort_symbol *parts[2], *symbol = NULL;
  cohort_executor *executor;
  cohort_ndarray *heads[2];

  (void)state;
  parts[0] = variable("x");
  parts[1] = node("_mul_scalar", "twice", ATTRS("scalar", "2"), INPUTS(variable("y")));
  ok(cohort_symbol_group(parts, 2, &symbol));
  cohort_symbol_free(parts[0]);
  cohort_symbol_free(parts[1]);
  {
    cohort_descs *known = desc("x", SHAPE(2), NULL);

    add_desc(known, "y", SHAPE(1), NULL);
    executor = simple_bind_with(symbol, known, "write");
  }
  assert_ptr_equal(address_free(output_of(executor, 0)), address_free(arg_of(executor, "x")));
  set_arg(executor, "x", 4, 5);
  set_arg(executor, "y", 6);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 4, 5);
  holds_free(output_of(executor, 1), 12);
  heads[0] = floats(SHAPE(2), FLOATS(7, 8));
  heads[1] = floats(SHAPE(1), FLOATS(3));
  ok(cohort_executor_backward(executor, heads, 2, 1));
  holds_free(grad_of(executor, "x"), 7, 8);
  holds_free(grad_of(executor, "y"), 6);
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(heads[1]);
  cohort_executor_free(executor);
}

/* EXE-08, EXE-33: two arguments of one name are bound by position; looking the name up is an error. */
static void arguments_of_one_name_are_bound_by_position(void **state) {
  cohort_symbol *symbol = node("elemwise_sub", "difference", NO_ATTRS, INPUTS(variable("x"), variable("x")));
  cohort_ndarray *args[2], *found = NULL;
  cohort_arrays *inputs = named("x", floats(SHAPE(1), FLOATS(0)));
  cohort_executor *executor = NULL, *refused = NULL;
  cohort_descs *known = desc("x", SHAPE(1), NULL);
  size_t num = 0;

  (void)state;
  args[0] = floats(SHAPE(1), FLOATS(9));
  args[1] = floats(SHAPE(1), FLOATS(2));
  ok(cohort_executor_bind(symbol, NULL, args, 2, NULL, NULL, NULL, 0, NULL, &executor));
  ok(cohort_executor_num_arrays(executor, COHORT_EXECUTOR_ARGS, &num));
  assert_int_equal(num, 2);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 7);
  fails(cohort_executor_array_named(executor, COHORT_EXECUTOR_ARGS, "x", &found), COHORT_ERROR_NAME, "'x'");
  fails(cohort_executor_set_inputs(executor, inputs), COHORT_ERROR_NAME, "'x'");
  fails(cohort_executor_simple_bind(symbol, NULL, known, NULL, &refused), COHORT_ERROR_NAME, "'x'");
  assert_null(found);
  assert_null(refused);
  ok(cohort_executor_array(executor, COHORT_EXECUTOR_ARGS, 1, &found));
  holds_free(found, 2);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);
  cohort_arrays_free(inputs);
  cohort_descs_free(known);
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
}

/* EXE-09: a symbol without arguments runs. */
static void a_symbol_without_arguments_runs(void **state) {
  cohort_symbol *symbol = node("_ones", "ones", ATTRS("shape", "(2, 2)"), INPUTS(NULL));
  cohort_executor *executor = NULL;

  (void)state;
  ok(cohort_executor_bind(symbol, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, &executor));
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  holds_free(output_of(executor, 0), 1, 1, 1, 1);
  cohort_executor_free(executor);
  executor = simple_bind(symbol, NULL, NULL);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 1, 1, 1, 1);
  cohort_executor_free(executor);
}

/* ---- allocated arrays
 * ---------------------------------------------------------------------------------------------- */

/* EXE-12: arguments, gradients where they are asked for, auxiliary states and outputs, all zeros, in list order. */
static void all_arrays_are_made_as_zeros(void **state) {
  const char *const reqs[] = {"null", "write", "add", "null"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  const char *const args[] = {"data", "fc_weight", "bn_gamma", "bn_beta"}, *const aux[] = {"bn_moving_mean",
                                                                                           "bn_moving_var"};
  cohort_executor *executor;
  int32_t req = -1;
  size_t i;

  (void)state;
  options.grad_req_list = reqs;
  options.num_grad_reqs = 4;
  executor = simple_bind(normalised(), desc("data", SHAPE(1, 1), NULL), &options);
  for (i = 0; i < 4; ++i) {
    const char *name = NULL;
    cohort_ndarray *grad = grad_of(executor, args[i]);

    ok(cohort_executor_name(executor, COHORT_EXECUTOR_ARGS, i, &name));
    assert_string_equal(name, args[i]);
    ok(cohort_executor_grad_req(executor, i, &req));
    assert_int_equal(req, i == 1 ? COHORT_GRAD_WRITE : i == 2 ? COHORT_GRAD_ADD : COHORT_GRAD_NULL);
    if (req == COHORT_GRAD_NULL) {
      assert_null(grad);
    } else {
      holds_free(grad, 0, 0);
    }
  }
  for (i = 0; i < 2; ++i) {
    const char *name = NULL;

    ok(cohort_executor_name(executor, COHORT_EXECUTOR_AUX, i, &name));
    assert_string_equal(name, aux[i]);
    holds_free(aux_of(executor, aux[i]), 0, 0);
  }
  holds_free(arg_of(executor, "fc_weight"), 0, 0);
  holds_free(output_of(executor, 0), 0, 0);
  cohort_executor_free(executor);
}

/* EXE-13: names that are no arguments are ignored, length 0 is completed, `__shape__` is used where no shape is given,
 * and a given shape wins over it; all shapes that stay unknown are listed in the error. */
static void shapes_are_completed(void **state) {
  cohort_descs *known = desc("data", SHAPE(4, 0), NULL);
  cohort_executor *executor = NULL;
  cohort_ndarray *array;

  (void)state;
  add_desc(known, "nobody", SHAPE(9, 9), NULL);
  add_desc(known, "fc_weight", SHAPE(2, 3), NULL);
  fails(try_simple_bind(&executor, linear("2"), known, NULL), COHORT_ERROR_SHAPE,
        "unknown: data (4, ?)"); /* nothing gives the number of columns */
  assert_null(executor);

  known = desc("b", SHAPE(4, 0), NULL);
  add_desc(known, "a", SHAPE(0, 3), NULL);
  add_desc(known, "nobody", SHAPE(9, 9), NULL);
  executor = simple_bind(product(), known, NULL);
  array = arg_of(executor, "a");
  has_shape(array, 4, 3);
  cohort_ndarray_free(array);
  cohort_executor_free(executor);

  executor =
      simple_bind(node("Flatten", "flat", NO_ATTRS, INPUTS(variable_with("data", "__shape__", "(2, 7)"))), NULL, NULL);
  array = arg_of(executor, "data");
  has_shape(array, 2, 7);
  cohort_ndarray_free(array);
  cohort_executor_free(executor);
  executor = simple_bind(node("Flatten", "flat", NO_ATTRS, INPUTS(variable_with("data", "__shape__", "(2, 7)"))),
                         desc("data", SHAPE(4, 5), NULL), NULL);
  array = arg_of(executor, "data");
  has_shape(array, 4, 5);
  cohort_ndarray_free(array);
  cohort_executor_free(executor);
  executor = NULL;
  fails(try_simple_bind(&executor, regression("2"), NULL, NULL), COHORT_ERROR_SHAPE,
        "unknown: data, fc_weight (2, ?), label");
  assert_null(executor);
}

static void has_dtype(const cohort_executor *executor, int32_t list, const char *name, int32_t dtype) {
  cohort_ndarray *array = array_of(executor, list, name);
  const int32_t found = dtype_of(array);

  cohort_ndarray_free(array);
  assert_int_equal(found, dtype);
}

/* EXE-14: dtypes are inferred from the given ones and from `__dtype__`, over which a given one wins; the rest becomes
 * float32, or is an error that lists it. */
static void dtypes_are_completed(void **state) {
  cohort_executor_options strict = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_descs *known = no_descs();
  cohort_executor *executor;

  (void)state;
  add_typed(known, "data", SHAPE(2, 3), COHORT_DTYPE_NONE);
  executor = simple_bind(
      node("FullyConnected", "fc", ATTRS("num_hidden", "1"), INPUTS(variable_with("data", "__dtype__", "1"))), known,
      NULL);
  has_dtype(executor, COHORT_EXECUTOR_ARGS, "data", COHORT_DTYPE_FLOAT64);
  has_dtype(executor, COHORT_EXECUTOR_ARGS, "fc_weight", COHORT_DTYPE_FLOAT64);
  has_dtype(executor, COHORT_EXECUTOR_OUTPUTS, "fc_output", COHORT_DTYPE_FLOAT64);
  cohort_executor_free(executor);
  known = no_descs();
  add_typed(known, "data", SHAPE(2, 3), COHORT_DTYPE_FLOAT32);
  executor = simple_bind(
      node("FullyConnected", "fc", ATTRS("num_hidden", "1"), INPUTS(variable_with("data", "__dtype__", "1"))), known,
      NULL);
  has_dtype(executor, COHORT_EXECUTOR_ARGS, "fc_bias", COHORT_DTYPE_FLOAT32);
  cohort_executor_free(executor);
  known = no_descs();
  add_typed(known, "data", SHAPE(2, 3), COHORT_DTYPE_NONE);
  executor = simple_bind(linear("1"), known, NULL);
  has_dtype(executor, COHORT_EXECUTOR_ARGS, "fc_weight", COHORT_DTYPE_FLOAT32);
  cohort_executor_free(executor);
  executor = NULL;
  strict.strict_dtypes = 1;
  known = no_descs();
  add_typed(known, "data", SHAPE(2, 3), COHORT_DTYPE_NONE);
  fails(try_simple_bind(&executor, linear("1"), known, &strict), COHORT_ERROR_DTYPE, "data, fc_weight");
  assert_null(executor);
}

/* EXE-15: BatchNorm over float16 keeps its parameters and statistics in float32; other parameters follow the data. */
static void batch_norm_keeps_its_own_dtype(void **state) {
  cohort_descs *known = no_descs();
  cohort_executor *executor;

  (void)state;
  add_typed(known, "data", SHAPE(2, 3), COHORT_DTYPE_FLOAT16);
  executor = simple_bind(normalised(), known, NULL);
  has_dtype(executor, COHORT_EXECUTOR_ARGS, "fc_weight", COHORT_DTYPE_FLOAT16);
  has_dtype(executor, COHORT_EXECUTOR_ARGS, "bn_gamma", COHORT_DTYPE_FLOAT32);
  has_dtype(executor, COHORT_EXECUTOR_ARGS, "bn_beta", COHORT_DTYPE_FLOAT32);
  has_dtype(executor, COHORT_EXECUTOR_AUX, "bn_moving_mean", COHORT_DTYPE_FLOAT32);
  has_dtype(executor, COHORT_EXECUTOR_AUX, "bn_moving_var", COHORT_DTYPE_FLOAT32);
  has_dtype(executor, COHORT_EXECUTOR_OUTPUTS, "bn_output", COHORT_DTYPE_FLOAT16);
  cohort_executor_free(executor);
}

/* EXE-16: storage types are accepted where they are dense; sparse ones, asked for or set on a variable, are refused by
 * name at bind. */
static void only_dense_storage_is_bound(void **state) {
  const char *const name = "b";
  const int32_t codes[] = {COHORT_STORAGE_UNDEFINED, COHORT_STORAGE_DEFAULT, COHORT_STORAGE_ROW_SPARSE,
                           COHORT_STORAGE_CSR, 3};
  const int32_t classes[] = {COHORT_SUCCESS, COHORT_SUCCESS, COHORT_ERROR_UNSUPPORTED, COHORT_ERROR_UNSUPPORTED,
                             COHORT_ERROR_INVALID_ARGUMENT};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;
  size_t i;

  (void)state;
  options.storage_names = &name;
  options.num_storage_types = 1;
  for (i = 0; i < COUNT(codes); ++i) {
    options.storage_types = &codes[i];
    if (classes[i] != COHORT_SUCCESS) {
      fails(try_simple_bind(&executor, product(), desc("a", SHAPE(2), NULL), &options), classes[i], "'b'");
    } else {
      cohort_executor_free(simple_bind(product(), desc("a", SHAPE(2), NULL), &options));
    }
  }
  fails(try_simple_bind(&executor, node("Flatten", "f", NO_ATTRS, INPUTS(variable_with("b", "__storage_type__", "2"))),
                        desc("b", SHAPE(2, 2), NULL), NULL),
        COHORT_ERROR_UNSUPPORTED, "'b'");
  assert_null(executor);
  options.storage_types = &codes[1]; /* what is given wins over the attribute */
  cohort_executor_free(simple_bind(node("Flatten", "f", NO_ATTRS, INPUTS(variable_with("b", "__storage_type__", "2"))),
                                   desc("b", SHAPE(2, 2), NULL), &options));
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

/* EXE-17: named arguments are shared with the shared executor, and their gradients, if a pool is given, even an empty
 * one; without a pool only intermediate memory is shared. Inputs come from the pool, and new ones are added to it,
 * gradients too. */
static void named_arguments_are_shared_where_there_is_a_pool(void **state) {
  const char *const shared_names[] = {"fc_weight"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *first, *second, *third;
  cohort_arrays *pool = NULL;
  size_t at = 0;

  (void)state;
  options.grad_req = "write";
  first = simple_bind(regression("1"), desc("data", SHAPE(4, 2), NULL), &options);
  options.shared_executor = first;
  options.shared_arg_names = shared_names;
  options.num_shared_arg_names = 1;
  second = simple_bind(regression("1"), desc("data", SHAPE(2, 2), NULL), &options);
  assert_ptr_not_equal(address_free(arg_of(first, "fc_weight")), address_free(arg_of(second, "fc_weight")));
  cohort_executor_free(second);
  ok(cohort_arrays_create(&pool));
  options.shared_data = pool;
  second = simple_bind(regression("1"), desc("data", SHAPE(4, 2), NULL), &options);
  assert_ptr_equal(address_free(arg_of(first, "fc_weight")), address_free(arg_of(second, "fc_weight")));
  assert_ptr_equal(address_free(grad_of(first, "fc_weight")), address_free(grad_of(second, "fc_weight")));
  assert_ptr_not_equal(address_free(arg_of(first, "data")), address_free(arg_of(second, "data")));
  ok(cohort_arrays_find(pool, "data", &at));
  ok(cohort_arrays_find(pool, "grad of data", &at));
  ok(cohort_arrays_find(pool, "label", &at));
  fails(cohort_arrays_find(pool, "fc_weight", &at), COHORT_ERROR_NAME, "fc_weight");
  third = simple_bind(regression("1"), desc("data", SHAPE(3, 2), NULL), &options);
  assert_ptr_equal(address_free(arg_of(third, "data")), address_free(arg_of(second, "data")));
  assert_ptr_equal(address_free(grad_of(third, "data")), address_free(grad_of(second, "data")));
  cohort_executor_free(first); /* the others stay shared */
  set_arg(third, "fc_weight", 1, 10);
  holds_free(arg_of(second, "fc_weight"), 1, 10);
  cohort_arrays_free(pool);
  cohort_executor_free(second);
  cohort_executor_free(third);
}

/* EXE-17: an argument that cannot be shared is refused by name, with the reason, and the pool stays as it was. */
static void arguments_that_do_not_fit_are_not_shared(void **state) {
  const char *const nobody = "nobody", *const weight = "fc_weight";
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *first = simple_bind(regression("1"), desc("data", SHAPE(4, 2), NULL), NULL), *refused = NULL;
  cohort_symbol *other = node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "1"),
                              INPUTS(variable("data"), variable("nobody")));
  size_t num = 77;

  (void)state;
  ok(cohort_arrays_create(&options.shared_data));
  options.shared_executor = first;
  options.shared_arg_names = &nobody;
  options.num_shared_arg_names = 1;
  fails(try_simple_bind(&refused, other, desc("data", SHAPE(4, 2), NULL), &options), COHORT_ERROR_NAME, "nobody");
  options.shared_arg_names = &weight;
  fails(try_simple_bind(&refused, regression("1"), desc("data", SHAPE(4, 3), NULL), &options), COHORT_ERROR_SHAPE,
        "fc_weight");
  assert_null(refused);
  ok(cohort_arrays_num(options.shared_data, &num));
  assert_int_equal(num, 0);
  cohort_arrays_free(options.shared_data);
  cohort_executor_free(first);
}

/* EXE-18: executors that share memory each have correct outputs right after their own pass, for any order of passes and
 * frees. */
static void a_family_runs_in_turns(void **state) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *first = simple_bind(product(), desc("a", SHAPE(3), NULL), NULL), *second;
  int round;

  (void)state;
  options.shared_executor = first;
  second = simple_bind(product(), desc("a", SHAPE(2), NULL), &options);
  set_arg(first, "a", 1, 2, 3);
  set_arg(first, "b", 10, 10, 10);
  set_arg(second, "a", 5, 6);
  set_arg(second, "b", 2, 2);
  for (round = 0; round < 3; ++round) {
    ok(cohort_executor_forward(first, 0));
    holds_free(output_of(first, 0), 10, 20, 30);
    ok(cohort_executor_forward(second, 0));
    holds_free(output_of(second, 0), 10, 12);
  }
  cohort_executor_free(first);
  ok(cohort_executor_forward(second, 0));
  holds_free(output_of(second, 0), 10, 12);
  cohort_executor_free(second);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arrays_are_given_in_list_order),
      TEST(arrays_by_name_are_found_or_missed_by_name),
      TEST(a_misfit_is_refused_by_node_and_input),
      TEST(null_gradients_are_not_written),
      TEST(gradients_are_checked_at_bind),
      TEST(a_written_gradient_has_memory_of_its_own),
      TEST(a_variable_may_be_a_head),
      TEST(arguments_of_one_name_are_bound_by_position),
      TEST(a_symbol_without_arguments_runs),
      TEST(all_arrays_are_made_as_zeros),
      TEST(shapes_are_completed),
      TEST(dtypes_are_completed),
      TEST(batch_norm_keeps_its_own_dtype),
      TEST(only_dense_storage_is_bound),
      TEST(named_arguments_are_shared_where_there_is_a_pool),
      TEST(arguments_that_do_not_fit_are_not_shared),
      TEST(a_family_runs_in_turns),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
