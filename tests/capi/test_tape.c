/* SPDX-License-Identifier: Apache-2.0 */
/* Tapes: what is recorded, where gradients go, what is refused, what is released. Custom functions are in
 * test_tape_functions.c, the gradients of the operators in test_tape_gradients.c. */
#include <time.h>

#include "support/boundary.h"
#include "support/sanitizer.h"
#include "support/tapes.h"

static const int64_t two = 2, three = 3;

/* Random operators draw the same numbers from the same seed, recorded or not. */
static void random_numbers_do_not_depend_on_recording(void **state) {
  static const char *const keys[] = {"p", "act_type", NULL}, *const values[] = {"0.5", "rrelu", NULL};
  static const char *const ops[] = {"Dropout", "LeakyReLU", "_shuffle"};
  cohort_invoke_options options = COHORT_INVOKE_OPTIONS_INIT, in_training = COHORT_INVOKE_OPTIONS_INIT;
  float x[64], alone[64], recorded[64];
  const int64_t length = 64;
  size_t i, k;

  (void)state;
  for (i = 0; i < 64; ++i) x[i] = (float)i - 32.5f;
  in_training.is_train = 1;
  for (k = 0; k < sizeof(ops) / sizeof(*ops); ++k) {
    const size_t num = keys[k] ? 1 : 0;
    uint64_t seed;

    for (seed = 1; seed < 4; ++seed) {
      cohort_ndarray *array = floats(x, &length, 1), *gradient = zeros(64), *output = NULL;
      cohort_arrays *outputs = NULL;
      cohort_tape *tape = new_tape();

      options.seed = in_training.seed = seed;
      ok(cohort_operator_invoke(ops[k], &keys[k], &values[k], num, &array, 1, NULL, 0, &in_training, &outputs));
      ok(cohort_arrays_get(outputs, 0, &output));
      ok(cohort_ndarray_read(output, alone, sizeof(alone)));
      cohort_ndarray_free(output);
      cohort_arrays_free(outputs);
      mark(tape, array, gradient, COHORT_GRAD_WRITE);
      ok(cohort_tape_invoke(tape, ops[k], &keys[k], &values[k], num, &array, 1, NULL, 0, &options, &outputs));
      ok(cohort_arrays_get(outputs, 0, &output));
      ok(cohort_ndarray_read(output, recorded, sizeof(recorded)));
      assert_memory_equal(alone, recorded, sizeof(alone));
      cohort_ndarray_free(output);
      cohort_arrays_free(outputs);
      cohort_tape_free(tape);
      cohort_ndarray_free(array);
      cohort_ndarray_free(gradient);
    }
  }
}

/* Gradients are written, added to, or left out, as arrays were marked. */
static void gradients_go_where_they_are_marked(void **state) {
  const float x[] = {1, 2, 3}, y[] = {5, 7, -1}, first[] = {10, 28, -6}, added[] = {2, 5, 10};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *b = floats(y, &three, 1), *by_a = zeros(3), *by_b = zeros(3);
  cohort_ndarray *square, *product;

  (void)state;
  put(by_a, 100, 100, 100);
  put(by_b, 1, 1, 1);
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  mark(tape, b, by_b, COHORT_GRAD_ADD);
  square = apply(tape, "square", a, NULL);
  product = apply(tape, "elemwise_mul", square, b);
  backward_along(tape, product, 0);
  assert_floats(by_a, first, 3); /* 2 a b */
  assert_floats(by_b, added, 3); /* 1 + a^2 */
  cohort_ndarray_free(square);
  cohort_ndarray_free(product);
  mark(tape, b, NULL, COHORT_GRAD_NULL);
  square = apply(tape, "square", b, NULL);
  fails(cohort_tape_backward(tape, &square, NULL, 1, NULL), COHORT_ERROR_STATE, "not in a recorded graph");
  assert_floats(by_b, added, 3);
  cohort_ndarray_free(square);
  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  cohort_ndarray_free(by_a);
  cohort_ndarray_free(by_b);
  cohort_tape_free(tape);
}

/* Several heads, with head gradients of their own or ones. */
static void heads_have_gradients(void **state) {
  const float x[] = {1, 2, 3}, weights[] = {10, 100, 1000}, sum[] = {21, 201, 2001};
  const float wrong[] = {1, 2};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *by_a = zeros(3), *weight = floats(weights, &three, 1);
  cohort_ndarray *short_one = floats(wrong, &two, 1), *whole = NULL, *heads[2], *head_grads[2];

  (void)state;
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  heads[0] = apply_with(tape, "_mul_scalar", "scalar", "2", a);
  heads[1] = apply_with(tape, "_plus_scalar", "scalar", "1", a);
  head_grads[0] = short_one;
  head_grads[1] = NULL;
  fails(cohort_tape_backward(tape, heads, head_grads, 2, NULL), COHORT_ERROR_SHAPE, "head_grads[0]");
  ok(cohort_ndarray_zeros(&three, 1, COHORT_DTYPE_FLOAT64, NULL, &whole));
  head_grads[0] = whole;
  fails(cohort_tape_backward(tape, heads, head_grads, 2, NULL), COHORT_ERROR_DTYPE, "float32");
  head_grads[0] = weight;
  ok(cohort_tape_backward(tape, heads, head_grads, 2, NULL));
  assert_floats(by_a, sum, 3); /* 2 w + 1 */
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(heads[1]);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_ndarray_free(weight);
  cohort_ndarray_free(short_one);
  cohort_ndarray_free(whole);
  cohort_tape_free(tape);
}

/* A head gradient may be the same array as the gradient of a marked array. */
static void head_gradients_may_be_written(void **state) {
  const float x[] = {1, 2, 3}, twice[] = {2, 2, 2}, once[] = {1, 1, 1};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *b = floats(x, &three, 1), *by_a = floats(once, &three, 1),
                 *by_b = zeros(3);
  cohort_ndarray *sum, *all;

  (void)state;
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  mark(tape, b, by_b, COHORT_GRAD_WRITE);
  sum = apply(tape, "elemwise_add", a, a);
  all = apply(tape, "elemwise_add", sum, b);
  ok(cohort_tape_backward(tape, &all, &by_a, 1, NULL));
  assert_floats(by_a, twice, 3);
  assert_floats(by_b, once, 3);
  cohort_ndarray_free(sum);
  cohort_ndarray_free(all);
  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  cohort_ndarray_free(by_a);
  cohort_ndarray_free(by_b);
  cohort_tape_free(tape);
}

/* A gradient array with "add" may be part of a graph, until the caller writes it. */
static void added_gradients_may_be_cleared(void **state) {
  const float x[] = {1, 2, 3}, once[] = {2, 4, 6}, twice[] = {4, 8, 12}, slope[] = {2, 2, 2};
  cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *by_a = zeros(3), *by_again = zeros(3), *square;
  int round;

  (void)state;
  options.create_graph = 1;
  mark(tape, a, by_a, COHORT_GRAD_ADD);
  square = apply(tape, "square", a, NULL);
  for (round = 0; round < 2; ++round) {
    ok(cohort_tape_backward(tape, &square, NULL, 1, &options));
    assert_floats(by_a, once, 3);
    put(by_a, 0, 0, 0);
  }
  backward_along(tape, square, 1);
  assert_floats(by_a, once, 3);
  backward_along(tape, square, 1);
  assert_floats(by_a, twice, 3);
  put(by_a, 0, 0, 0);
  ok(cohort_tape_backward(tape, &square, NULL, 1, &options));
  mark(tape, a, by_again, COHORT_GRAD_WRITE);
  backward_along(tape, by_a, 0);
  assert_floats(by_again, slope, 3);
  cohort_ndarray_free(square);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_ndarray_free(by_again);
  cohort_tape_free(tape);
}

/* Marking again through a view of another shape keeps the variable; a part of another array is refused before any is
 * marked. */
static void marks_are_of_whole_arrays(void **state) {
  const float x[] = {1, 2, 3, 4, 5, 6}, slope[] = {2, 4, 6, 8, 10, 12};
  const int64_t flat = 6, matrix[] = {2, 3};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, matrix, 2), *by_line = zeros(6), *other = zeros(3), *line = NULL, *part = NULL, *square;
  cohort_ndarray *arrays[2];

  (void)state;
  mark(tape, a, NULL, COHORT_GRAD_WRITE);
  ok(cohort_ndarray_reshape(a, &flat, 1, &line));
  mark(tape, line, by_line, COHORT_GRAD_WRITE);
  square = apply(tape, "square", a, NULL);
  backward_along(tape, square, 0);
  assert_floats(by_line, slope, 6);
  cohort_ndarray_free(square);

  ok(cohort_ndarray_slice(a, 0, 1, &part));
  arrays[0] = other, arrays[1] = part;
  fails(cohort_tape_mark(tape, arrays, NULL, NULL, 2), COHORT_ERROR_INVALID_ARGUMENT, "arrays[1]");
  mark(tape, a, NULL, COHORT_GRAD_NULL);
  arrays[0] = a;
  fails(cohort_tape_mark(tape, arrays, NULL, NULL, 2), COHORT_ERROR_INVALID_ARGUMENT, "overlaps arrays[0]");
  fails(cohort_tape_backward(tape, &other, NULL, 1, NULL), COHORT_ERROR_STATE, "not in a recorded graph");
  fails(cohort_tape_backward(tape, &a, NULL, 1, NULL), COHORT_ERROR_STATE, "not in a recorded graph");
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_line);
  cohort_ndarray_free(other);
  cohort_ndarray_free(line);
  cohort_ndarray_free(part);
  cohort_tape_free(tape);
}

/* A recorded operator may overwrite its inputs; its result is computed from the old values. */
static void outputs_may_overlap_inputs(void **state) {
  const float x[] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89}, ones[] = {1, 1}, none[] = {0, 0};
  const int64_t matrix[] = {5, 2};
  cohort_tape *tape = new_tape();
  cohort_ndarray *whole = floats(x, matrix, 2), *inputs[5], *into = NULL, *apart = NULL;
  cohort_arrays *outputs = NULL;
  float expected[8];
  int i;

  (void)state;
  ok(cohort_ndarray_slice(whole, 0, 4, &inputs[0]));
  ok(cohort_ndarray_slice(whole, 1, 5, &into));
  for (i = 1; i < 5; ++i) inputs[i] = floats(i == 1 || i == 4 ? ones : none, &two, 1);
  mark(tape, inputs[1], NULL, COHORT_GRAD_WRITE);
  ok(cohort_tape_invoke(tape, "BatchNorm", NULL, NULL, 0, inputs, 5, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &apart));
  ok(cohort_ndarray_read(apart, expected, sizeof(expected)));
  ok(cohort_tape_invoke(tape, "BatchNorm", NULL, NULL, 0, inputs, 5, &into, 1, NULL, NULL));
  assert_floats(into, expected, 8);
  fails(cohort_tape_backward(tape, &into, NULL, 1, NULL), COHORT_ERROR_STATE, "input 0 of BatchNorm");
  for (i = 0; i < 5; ++i) cohort_ndarray_free(inputs[i]);
  cohort_ndarray_free(whole);
  cohort_ndarray_free(into);
  cohort_ndarray_free(apart);
  cohort_arrays_free(outputs);
  cohort_tape_free(tape);
}

/* While paused a tape records nothing, and its mode determines what Dropout does. */
static void tapes_pause_and_have_a_mode(void **state) {
  const float x[] = {1, 2, 3}, ones[] = {1, 1, 1};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *by_a = zeros(3), *seen, *unseen;
  float out[3], gradient[3];
  int32_t before = -1, now = -1;
  int i;

  (void)state;
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  ok(cohort_tape_is_recording(tape, &now));
  assert_int_equal(now, 1);
  ok(cohort_tape_set_recording(tape, 0, &before));
  assert_int_equal(before, 1);
  unseen = apply(tape, "square", a, NULL);
  ok(cohort_tape_set_recording(tape, 1, &before));
  assert_int_equal(before, 0);
  fails(cohort_tape_backward(tape, &unseen, NULL, 1, NULL), COHORT_ERROR_STATE, "not in a recorded graph");
  seen = apply(tape, "elemwise_add", a, unseen); /* a constant is added */
  backward_along(tape, seen, 0);
  assert_floats(by_a, ones, 3);
  cohort_ndarray_free(seen);

  ok(cohort_tape_set_training(tape, 0, &before));
  assert_int_equal(before, 1);
  seen = apply(tape, "Dropout", a, NULL);
  assert_floats(seen, x, 3);
  backward_along(tape, seen, 0);
  assert_floats(by_a, ones, 3);
  cohort_ndarray_free(seen);
  ok(cohort_tape_set_training(tape, 1, NULL));
  ok(cohort_tape_is_training(tape, &now));
  assert_int_equal(now, 1);
  seen = apply(tape, "Dropout", a, NULL);
  backward_along(tape, seen, 0);
  ok(cohort_ndarray_read(seen, out, sizeof(out)));
  ok(cohort_ndarray_read(by_a, gradient, sizeof(gradient)));
  for (i = 0; i < 3; ++i) assert_true(gradient[i] == out[i] / x[i] && (gradient[i] == 0 || gradient[i] == 2));
  fails(cohort_tape_set_recording(tape, 2, NULL), COHORT_ERROR_INVALID_ARGUMENT, "recording");
  cohort_ndarray_free(seen);
  cohort_ndarray_free(unseen);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_tape_free(tape);
}

/* A backward pass releases the graph it used, unless that is retained; other graphs stay. */
static void graphs_are_retained_on_demand(void **state) {
  const float x[] = {1, 2, 3}, twice[] = {4, 8, 12}, once[] = {2, 4, 6};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *by_a = zeros(3), *square, *other, *above;

  (void)state;
  mark(tape, a, by_a, COHORT_GRAD_ADD);
  square = apply(tape, "square", a, NULL);
  other = apply(tape, "sin", a, NULL);
  above = apply(tape, "exp", square, NULL);
  assert_int_equal(num_recorded(tape), 3);
  backward_along(tape, square, 1);
  backward_along(tape, square, 0);
  assert_floats(by_a, twice, 3);
  assert_int_equal(num_recorded(tape), 2);
  fails(cohort_tape_backward(tape, &square, NULL, 1, NULL), COHORT_ERROR_STATE, "heads[0]");
  fails(cohort_tape_backward(tape, &above, NULL, 1, NULL), COHORT_ERROR_STATE, "exp");
  assert_floats(by_a, twice, 3);
  backward_along(tape, other, 0);
  cohort_ndarray_free(square);
  square = apply(tape, "square", a, NULL);
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  backward_along(tape, square, 0);
  assert_floats(by_a, once, 3);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_ndarray_free(square);
  cohort_ndarray_free(other);
  cohort_ndarray_free(above);
  cohort_tape_free(tape);
}

/* Arrays that a gradient needs must not have changed; others may, and marked arrays may change between two steps. */
static void overwritten_arrays_are_refused(void **state) {
  const float x[] = {1, 2, 3}, later[] = {8, 10, 12}, ones[] = {1, 1, 1};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *by_a = zeros(3), *square, *sum, *output = NULL;

  (void)state;
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  square = apply(tape, "square", a, NULL);
  put(a, 4, 5, 6);
  fails(cohort_tape_backward(tape, &square, NULL, 1, NULL), COHORT_ERROR_STATE, "input 0 of square");
  cohort_ndarray_free(square);
  square = apply(tape, "square", a, NULL);
  backward_along(tape, square, 0);
  assert_floats(by_a, later, 3);
  cohort_ndarray_free(square);

  sum = apply(tape, "elemwise_add", a, a);
  put(sum, 0, 0, 0);
  fails(try_apply(tape, "square", NULL, NULL, sum, NULL, &output), COHORT_ERROR_STATE, "recorded by elemwise_add");
  fails(cohort_tape_backward(tape, &sum, NULL, 1, NULL), COHORT_ERROR_STATE, "recorded by elemwise_add");
  cohort_ndarray_free(sum);

  sum = apply_with(tape, "_plus_scalar", "scalar", "1", a);
  put(a, 0, 0, 0);
  backward_along(tape, sum, 0);
  assert_floats(by_a, ones, 3);
  cohort_ndarray_free(sum);

  square = apply(tape, "square", a, NULL); /* in place of its input: the gradient of sin cannot be computed any more */
  ok(cohort_tape_invoke(tape, "sin", NULL, NULL, 0, &square, 1, &square, 1, NULL, NULL));
  fails(cohort_tape_backward(tape, &square, NULL, 1, NULL), COHORT_ERROR_STATE, "input 0 of sin");
  fails(cohort_tape_invoke(tape, "sin", NULL, NULL, 0, &a, 1, &a, 1, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "marked");
  ok(cohort_tape_set_recording(tape, 0, NULL));
  ok(cohort_tape_invoke(tape, "sin", NULL, NULL, 0, &a, 1, &a, 1, NULL, NULL));
  cohort_ndarray_free(square);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_tape_free(tape);
}

/* An array is recognised by its memory: through another handle and in another shape, but not in part. */
static void arrays_are_known_by_their_memory(void **state) {
  const float x[] = {1, 2, 3, 4, 5, 6}, slope[] = {2, 4, 6, 8, 10, 12};
  const int64_t flat = 6, matrix[] = {2, 3};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, matrix, 2), *by_a = NULL, *line = NULL, *part = NULL, *again = NULL, *square,
                 *none = NULL;

  (void)state;
  ok(cohort_ndarray_zeros(matrix, 2, COHORT_DTYPE_FLOAT32, NULL, &by_a));
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  ok(cohort_ndarray_reshape(a, &flat, 1, &line));
  ok(cohort_ndarray_share(line, &again));
  square = apply(tape, "square", again, NULL);
  backward_along(tape, square, 0);
  assert_floats(by_a, slope, 6);
  ok(cohort_ndarray_slice(a, 0, 1, &part));
  mark(tape, a, NULL, COHORT_GRAD_NULL);
  mark(tape, part, NULL, COHORT_GRAD_WRITE);
  fails(try_apply(tape, "square", NULL, NULL, a, NULL, &none), COHORT_ERROR_INVALID_ARGUMENT, "shares elements");
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_ndarray_free(line);
  cohort_ndarray_free(again);
  cohort_ndarray_free(part);
  cohort_ndarray_free(square);
  cohort_tape_free(tape);
}

/* Gradients as new arrays: of intermediate results, too; zeros for arrays that the head does not depend on; marks are
 * not touched. */
static void gradients_come_out_as_arrays(void **state) {
  const float x[] = {1, 2, 3}, by_x[] = {2, 4, 6}, ones[] = {1, 1, 1}, none[] = {0, 0, 0};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *b = floats(x, &three, 1), *by_a = zeros(3), *square, *same, *blocked;
  cohort_ndarray *variables[3], *got = NULL;
  cohort_arrays *gradients = NULL;
  const float *expected[3];
  size_t i;

  (void)state;
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  mark(tape, b, NULL, COHORT_GRAD_WRITE);
  square = apply(tape, "square", a, NULL);
  same = apply(tape, "_copy", square, NULL);
  variables[0] = a, variables[1] = square, variables[2] = b;
  expected[0] = by_x, expected[1] = ones, expected[2] = none;
  ok(cohort_tape_grad(tape, &same, NULL, 1, variables, 3, NULL, &gradients));
  for (i = 0; i < 3; ++i) {
    ok(cohort_arrays_get(gradients, i, &got));
    assert_floats(got, expected[i], 3);
    cohort_ndarray_free(got);
  }
  assert_floats(by_a, none, 3);
  put(by_a, 1, 1, 1);
  blocked = apply(tape, "BlockGrad", a, NULL);
  backward_along(tape, blocked, 0);
  assert_floats(by_a, none, 3);
  cohort_arrays_free(gradients);
  cohort_ndarray_free(square);
  cohort_ndarray_free(same);
  cohort_ndarray_free(blocked);
  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  cohort_ndarray_free(by_a);
  cohort_tape_free(tape);
}

/* The gradient arrays of a recorded backward are part of the graph; an operator without a second gradient is an
 * error. */
static void gradients_have_gradients(void **state) {
  const float x[] = {1, 2, 3}, first[] = {3, 12, 27}, second[] = {6, 12, 18};
  cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *by_a = zeros(3), *by_again = zeros(3), *cube, *loss;

  (void)state;
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  cube = apply_with(tape, "_power_scalar", "scalar", "3", a);
  options.create_graph = 1;
  ok(cohort_tape_set_recording(tape, 0, NULL));
  ok(cohort_tape_backward(tape, &cube, NULL, 1, &options));
  assert_floats(by_a, first, 3);
  mark(tape, a, by_again, COHORT_GRAD_WRITE);
  backward_along(tape, by_a, 0);
  assert_floats(by_again, second, 3);
  cohort_ndarray_free(cube);

  ok(cohort_tape_set_recording(tape, 1, NULL));
  cube = apply(tape, "square", a, NULL);
  loss = apply(tape, "MAERegressionOutput", cube, a);
  ok(cohort_tape_backward(tape, &loss, NULL, 1, &options));
  fails(cohort_tape_backward(tape, &by_again, NULL, 1, NULL), COHORT_ERROR_UNSUPPORTED,
        "_backward_MAERegressionOutput");
  cohort_ndarray_free(cube);
  cohort_ndarray_free(loss);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_ndarray_free(by_again);
  cohort_tape_free(tape);
}

/* Waits until the tape has recorded this many: entries that a device still works on remain until it is done. */
static void comes_to(cohort_tape *tape, size_t num) {
  const struct timespec pause = {0, 10000000};
  int i;

  ok(cohort_wait_all());
  for (i = 0; i < 500 && num_recorded(tape) != num; ++i) nanosleep(&pause, NULL);
  assert_int_equal(num_recorded(tape), num);
}

/* Using an array part by part for long leaves nothing behind. */
static void parts_are_forgotten(void **state) {
  const float x[] = {1, 2, 3};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *part = NULL;
  int i;

  (void)state;
  mark(tape, a, NULL, COHORT_GRAD_WRITE);
  ok(cohort_ndarray_slice(a, 1, 3, &part));
  for (i = 0; i < 1000; ++i) cohort_ndarray_free(apply(tape, "square", part, NULL));
  comes_to(tape, 0);
  cohort_ndarray_free(part);
  cohort_ndarray_free(a);
  cohort_tape_free(tape);
}

/* A chain of 100,000 operators is differentiated and released without recursion. */
static void long_chains_do_not_recurse(void **state) {
  const float x[] = {1, 2, 3}, ones[] = {1, 1, 1};
  cohort_tape *tape;
  cohort_ndarray *a, *by_a, *at = NULL, *next;
  enum { LENGTH = UNDER_SANITIZER ? 8000 : 50000 };
  int round, i;

  (void)state;
  only_on_cpus();
  tape = new_tape();
  a = floats(x, &three, 1);
  by_a = zeros(3);
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  for (round = 0; round < 2; ++round) {
    at = apply(tape, "_copy", a, NULL);
    for (i = 1; i < LENGTH; ++i) {
      next = apply(tape, i % 2 ? "tanh" : "_copy", at, NULL);
      cohort_ndarray_free(at);
      at = next;
    }
    assert_int_equal(num_recorded(tape), LENGTH);
    if (round == 1) break;
    cohort_ndarray_free(at);
    comes_to(tape, 0); /* no longer reachable */
  }
  put(by_a, 5, 5, 5);
  backward_along(tape, at, 0);
  {
    float found[3];
    int k;

    ok(cohort_ndarray_read(by_a, found, sizeof(found)));
    for (k = 0; k < 3; ++k) assert_true(found[k] >= 0 && found[k] < ones[k]);
  }
  assert_int_equal(num_recorded(tape), 0);
  cohort_ndarray_free(at);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_tape_free(tape);
}

/* The memory of a loop that records and never calls backward does not grow. */
static void unreachable_graphs_are_released(void **state) {
  const float x[] = {1, 2, 3};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *b, *c;
  int i;

  (void)state;
  mark(tape, a, NULL, COHORT_GRAD_WRITE);
  for (i = 0; i < 1000; ++i) {
    b = apply(tape, "exp", a, NULL);
    c = apply(tape, "elemwise_mul", b, b);
    cohort_ndarray_free(b);
    if (i < 999) {
      cohort_ndarray_free(c);
      continue;
    }
    comes_to(tape, 2);
    backward_along(tape, c, 0);
    assert_int_equal(num_recorded(tape), 0);
    cohort_ndarray_free(c);
  }
  cohort_ndarray_free(a);
  cohort_tape_free(tape);
}

/* The recorded graph of an array can be read as a symbol. */
static void recorded_graphs_are_symbols(void **state) {
  const float x[] = {1, 2, 3};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *b = floats(x, &three, 1), *product, *sum, *result;
  cohort_symbol *symbol = NULL;
  const char *name = NULL;
  size_t num = 0;

  (void)state;
  fails(cohort_tape_symbol(tape, a, &symbol), COHORT_ERROR_STATE, "recorded graph");
  mark(tape, a, NULL, COHORT_GRAD_WRITE);
  product = apply(tape, "elemwise_mul", a, b);
  sum = apply(tape, "elemwise_add", product, a);
  result = apply_with(tape, "_mul_scalar", "scalar", "3", sum);
  ok(cohort_tape_symbol(tape, result, &symbol));
  ok(cohort_symbol_num_names(symbol, COHORT_SYMBOL_ARGUMENTS, &num));
  assert_int_equal(num, 2);
  ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_ARGUMENTS, 1, &name));
  assert_string_equal(name, "var1");
  cohort_symbol_free(symbol);
  cohort_ndarray_free(product);
  cohort_ndarray_free(sum);
  cohort_ndarray_free(result);
  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  cohort_tape_free(tape);
}

/* Bad arguments are refused before anything is done. */
static void bad_arguments_are_refused(void **state) {
  const float x[] = {1, 2, 3};
  const int32_t req = 2;
  cohort_invoke_options options = COHORT_INVOKE_OPTIONS_INIT;
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *wrong = zeros(2), *whole = NULL;
  cohort_arrays *outputs = NULL;

  (void)state;
  ok(cohort_ndarray_zeros(&three, 1, COHORT_DTYPE_INT32, NULL, &whole));
  fails(cohort_tape_mark(tape, &a, &wrong, NULL, 1), COHORT_ERROR_SHAPE, "gradients[0]");
  fails(cohort_tape_mark(tape, &whole, NULL, NULL, 1), COHORT_ERROR_DTYPE, "floating");
  fails(cohort_tape_mark(tape, &a, NULL, &req, 1), COHORT_ERROR_INVALID_ARGUMENT, "");
  options.is_train = 1;
  fails(cohort_tape_invoke(tape, "sin", NULL, NULL, 0, &a, 1, NULL, 0, &options, &outputs),
        COHORT_ERROR_INVALID_ARGUMENT, "is_train");
  fails(cohort_tape_invoke(tape, "no_such_operator", NULL, NULL, 0, &a, 1, NULL, 0, NULL, &outputs), COHORT_ERROR_NAME,
        "no_such_operator");
  mark(tape, a, NULL, COHORT_GRAD_WRITE);
  fails(cohort_tape_invoke(tape, "Dropout", NULL, NULL, 0, NULL, 0, NULL, 0, NULL, &outputs),
        COHORT_ERROR_INVALID_ARGUMENT, "inputs");
  assert_int_equal(num_recorded(tape), 0);
  cohort_ndarray_free(a);
  cohort_ndarray_free(wrong);
  cohort_ndarray_free(whole);
  cohort_tape_free(tape);
}

/* Results that are dropped without a backward pass, while another recorded array lives on. */
static void large_results_that_nobody_needs_are_released(void **state) {
  const int64_t length = 1 << 18;
  cohort_device_memory_info before = COHORT_DEVICE_MEMORY_INFO_INIT, after = COHORT_DEVICE_MEMORY_INFO_INIT;
  cohort_tape *tape = new_tape();
  cohort_ndarray *x = zeros(length), *kept, *result;
  int i;

  (void)state;
  mark(tape, x, NULL, COHORT_GRAD_WRITE);
  kept = apply(tape, "square", x, NULL);
  ok(cohort_device_memory(&test_contexts()[0], &before));
  for (i = 0; i < 100; ++i) {
    result = apply(tape, "square", x, NULL);
    cohort_ndarray_free(apply(tape, "exp", result, NULL));
    ok(cohort_wait_all());
    cohort_ndarray_free(result);
  }
  ok(cohort_device_memory(&test_contexts()[0], &after));
  assert_true(after.used_bytes - before.used_bytes < (size_t)100 << 20);
  cohort_ndarray_free(kept);
  cohort_ndarray_free(x);
  cohort_tape_free(tape);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(large_results_that_nobody_needs_are_released),
      TEST(gradients_go_where_they_are_marked),
      TEST(heads_have_gradients),
      TEST(random_numbers_do_not_depend_on_recording),
      TEST(head_gradients_may_be_written),
      TEST(added_gradients_may_be_cleared),
      TEST(marks_are_of_whole_arrays),
      TEST(outputs_may_overlap_inputs),
      TEST(tapes_pause_and_have_a_mode),
      TEST(graphs_are_retained_on_demand),
      TEST(overwritten_arrays_are_refused),
      TEST(arrays_are_known_by_their_memory),
      TEST(gradients_come_out_as_arrays),
      TEST(gradients_have_gradients),
      TEST(parts_are_forgotten),
      TEST(long_chains_do_not_recurse),
      TEST(unreachable_graphs_are_released),
      TEST(recorded_graphs_are_symbols),
      TEST(bad_arguments_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
