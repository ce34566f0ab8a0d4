/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that share memory with others, on a tape: writes to the memory around them do not affect them. */
#include <time.h>

#include "support/executor_tests.h"
#include "support/tapes.h"

static const float rows[] = {1, 2, 3, 4, 5, 6};

static cohort_ndarray *square_of(cohort_tape *tape, cohort_ndarray *array) {
  return apply(tape, "square", array, NULL);
}

static cohort_tape *marked(cohort_ndarray *array, cohort_ndarray *gradient) {
  cohort_tape *tape = new_tape();

  mark(tape, array, gradient, COHORT_GRAD_WRITE);
  return tape;
}

/* One row of a batch is used while the next one is filled. */
static void other_rows_may_be_written(void **state) {
  cohort_ndarray *batch = floats(SHAPE(3, 2), rows, 6), *gradient = floats(SHAPE(1, 2), FLOATS(0, 0)), *row = NULL;
  cohort_ndarray *next = NULL, *output;
  cohort_tape *tape;
  int round;

  (void)state;
  ok(cohort_ndarray_slice(batch, 0, 1, &row));
  ok(cohort_ndarray_slice(batch, 1, 3, &next));
  tape = marked(row, gradient);
  for (round = 0; round < 3; ++round) {
    output = square_of(tape, row);
    ok(cohort_ndarray_fill(next, 9 + round));
    ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
    holds(gradient, 2, 4);
    cohort_ndarray_free(output);
    output = square_of(tape, row);
    ok(cohort_ndarray_write(row, rows, 2 * sizeof(float)));
    fails(cohort_tape_backward(tape, &output, NULL, 1, NULL), COHORT_ERROR_STATE, "was overwritten");
    cohort_ndarray_free(output);
    output = square_of(tape, row);
    ok(cohort_ndarray_write(batch, rows, sizeof(rows)));
    fails(cohort_tape_backward(tape, &output, NULL, 1, NULL), COHORT_ERROR_STATE, "was overwritten");
    cohort_ndarray_free(output);
  }
  cohort_tape_free(tape);
  cohort_ndarray_free(row);
  cohort_ndarray_free(next);
  cohort_ndarray_free(batch);
  cohort_ndarray_free(gradient);
}

/* Writes by operators are distinguished like writes by the caller. */
static void operators_may_write_other_rows(void **state) {
  cohort_ndarray *batch = floats(SHAPE(3, 2), rows, 6), *gradient = floats(SHAPE(1, 2), FLOATS(0, 0)), *row = NULL;
  cohort_ndarray *next = NULL, *output;
  cohort_tape *tape;
  int round;

  (void)state;
  ok(cohort_ndarray_slice(batch, 2, 3, &row));
  ok(cohort_ndarray_slice(batch, 0, 1, &next));
  tape = marked(row, gradient);
  for (round = 0; round < 3; ++round) {
    output = square_of(tape, row);
    ok(cohort_operator_invoke("_mul_scalar", ATTRS("scalar"), ATTRS("2"), 1, &next, 1, &next, 1, NULL, NULL));
    ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
    holds(gradient, 10, 12);
    cohort_ndarray_free(output);
    output = square_of(tape, row);
    ok(cohort_operator_invoke("_mul_scalar", ATTRS("scalar"), ATTRS("1"), 1, &row, 1, &row, 1, NULL, NULL));
    fails(cohort_tape_backward(tape, &output, NULL, 1, NULL), COHORT_ERROR_STATE, "was overwritten");
    cohort_ndarray_free(output);
  }
  holds(next, 8, 16);
  cohort_tape_free(tape);
  cohort_ndarray_free(row);
  cohort_ndarray_free(next);
  cohort_ndarray_free(batch);
  cohort_ndarray_free(gradient);
}

/* A hundred thousand rows, one by one, take as long as a hundred thousand calls. Calls of a simulated GPU are slow
 * themselves. */
static void many_rows_may_be_written(void **state) {
  const int64_t num_rows = test_contexts()->device_type == COHORT_DEVICE_CPU ? 100000 : 2000;
  cohort_ndarray *batch = NULL, *first = NULL, *gradient = floats(SHAPE(1), FLOATS(0)), *output;
  cohort_tape *tape;
  const clock_t begin = clock();
  const float value = 3;
  int64_t i;

  (void)state;
  ok(cohort_ndarray_zeros(SHAPE(num_rows), COHORT_DTYPE_FLOAT32, NULL, &batch));
  ok(cohort_ndarray_at(batch, 0, &first));
  ok(cohort_ndarray_write(first, &value, sizeof(value)));
  tape = marked(first, gradient);
  output = square_of(tape, first);
  for (i = 1; i < num_rows; ++i) {
    cohort_ndarray *row = NULL;

    ok(cohort_ndarray_at(batch, i, &row));
    ok(cohort_ndarray_write(row, &value, sizeof(value)));
    cohort_ndarray_free(row);
  }
  ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
  holds(gradient, 6);
  assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 10);
  cohort_ndarray_free(output);
  cohort_ndarray_free(first);
  cohort_ndarray_free(batch);
  cohort_ndarray_free(gradient);
  cohort_tape_free(tape);
}

/* A slice, a row and a slice that is no whole rows of another one: gradients flow back to their elements, of a marked
 * array and of a recorded one. */
static void parts_are_recorded(void **state) {
  cohort_ndarray *x = floats(SHAPE(3, 2), rows, 6), *gradient = floats(SHAPE(3, 2), FLOATS(0, 0, 0, 0, 0, 0)),
                 *part = NULL;
  cohort_ndarray *row = NULL, *element = NULL, *square, *output;
  cohort_tape *tape = marked(x, gradient);

  (void)state;
  ok(cohort_ndarray_slice(x, 1, 3, &part));
  output = square_of(tape, part);
  ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
  holds(gradient, 0, 0, 6, 8, 10, 12);
  cohort_ndarray_free(output);
  cohort_ndarray_free(part);

  square = square_of(tape, x); /* x^2, of which one element is taken by way of a row, and squared again */
  ok(cohort_ndarray_at(square, 0, &row));
  ok(cohort_ndarray_at(row, 1, &element));
  output = square_of(tape, element);
  ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
  holds(gradient, 0, 32, 0, 0, 0, 0);
  cohort_ndarray_free(output);

  ok(cohort_tape_set_recording(tape, 0, NULL)); /* a constant, as all arrays are now */
  output = square_of(tape, row);
  ok(cohort_tape_set_recording(tape, 1, NULL));
  fails(cohort_tape_backward(tape, &output, NULL, 1, NULL), COHORT_ERROR_STATE, "not in a recorded graph");
  cohort_ndarray_free(output);
  cohort_ndarray_free(element);
  cohort_ndarray_free(row);
  cohort_ndarray_free(square);
  cohort_ndarray_free(x);
  cohort_ndarray_free(gradient);
  cohort_tape_free(tape);
}

/* A part without elements shares none with the whole. */
static void empty_parts_are_constants(void **state) {
  cohort_ndarray *x = floats(SHAPE(3, 2), rows, 6), *part = NULL, *output;
  cohort_tape *tape = marked(x, NULL);
  int64_t at;

  (void)state;
  for (at = 0; at <= 3; ++at) {
    ok(cohort_ndarray_slice(x, at, at, &part));
    output = square_of(tape, part);
    fails(cohort_tape_backward(tape, &output, NULL, 1, NULL), COHORT_ERROR_STATE, "not in a recorded graph");
    cohort_ndarray_free(output);
    cohort_ndarray_free(part);
  }
  cohort_ndarray_free(x);
  cohort_tape_free(tape);
}

/* A part is recorded each time it is used, so that there is no one gradient of it: zeros would be wrong. */
static void parts_are_no_variables(void **state) {
  cohort_ndarray *x = floats(SHAPE(3, 2), rows, 6), *part = NULL, *output, *slope = NULL;
  cohort_tape *tape = marked(x, NULL);
  cohort_arrays *slopes = NULL;

  (void)state;
  ok(cohort_ndarray_slice(x, 1, 3, &part));
  output = square_of(tape, part);
  fails(cohort_tape_grad(tape, &output, NULL, 1, &part, 1, NULL, &slopes), COHORT_ERROR_INVALID_ARGUMENT, "part");
  ok(cohort_tape_grad(tape, &output, NULL, 1, &x, 1, NULL, &slopes));
  ok(cohort_arrays_get(slopes, 0, &slope));
  holds(slope, 0, 0, 6, 8, 10, 12);
  cohort_ndarray_free(slope);
  cohort_arrays_free(slopes);
  cohort_ndarray_free(output);
  cohort_ndarray_free(part);
  cohort_ndarray_free(x);
  cohort_tape_free(tape);
}

/* A part of a recorded array that was overwritten is no constant: that would lose its gradient. */
static void parts_of_overwritten_arrays_are_refused(void **state) {
  cohort_ndarray *x = floats(SHAPE(3, 2), rows, 6), *first = NULL, *rest = NULL, *square, *output = NULL;
  cohort_tape *tape = marked(x, NULL);
  cohort_arrays *outputs = NULL;

  (void)state;
  square = square_of(tape, x);
  ok(cohort_ndarray_slice(square, 0, 1, &first));
  ok(cohort_ndarray_slice(square, 1, 3, &rest));
  ok(cohort_ndarray_fill(first, 9));
  fails(cohort_tape_invoke(tape, "square", NULL, NULL, 0, &rest, 1, NULL, 0, NULL, &outputs), COHORT_ERROR_STATE,
        "overwritten");
  ok(cohort_tape_set_recording(tape, 0, NULL));
  output = square_of(tape, rest);
  cohort_ndarray_free(output);
  cohort_ndarray_free(rest);
  cohort_ndarray_free(first);
  cohort_ndarray_free(square);
  cohort_ndarray_free(x);
  cohort_tape_free(tape);
}

/* The statistics of a batch are written where the moving ones are: results are copied there, and backward still reads
 * what the layer's own step has saved. */
static void outputs_may_be_states_of_a_layer(void **state) {
  cohort_ndarray *x = floats(SHAPE(3, 2), rows, 6), *gradient = floats(SHAPE(3, 2), FLOATS(0, 0, 0, 0, 0, 0));
  cohort_ndarray *gamma = floats(SHAPE(2), FLOATS(1, 1)), *beta = floats(SHAPE(2), FLOATS(0, 0));
  cohort_ndarray *mean = floats(SHAPE(2), FLOATS(0, 0)), *variance = floats(SHAPE(2), FLOATS(1, 1));
  cohort_ndarray *y = floats(SHAPE(3, 2), FLOATS(0, 0, 0, 0, 0, 0)), *inputs[5], *outputs[3];
  cohort_tape *tape = marked(x, gradient);

  (void)state;
  inputs[0] = x, inputs[1] = gamma, inputs[2] = beta, inputs[3] = mean, inputs[4] = variance;
  outputs[0] = y, outputs[1] = mean, outputs[2] = variance;
  ok(cohort_tape_invoke(tape, "_contrib_BatchNormWithReLU", ATTRS("output_mean_var"), ATTRS("1"), 1, inputs, 5, outputs,
                        3, NULL, NULL));
  holds(mean, 3, 4);
  ok(cohort_tape_backward(tape, &y, NULL, 1, NULL));
  cohort_tape_free(tape);
  cohort_ndarray_free(x);
  cohort_ndarray_free(gradient);
  cohort_ndarray_free(gamma);
  cohort_ndarray_free(beta);
  cohort_ndarray_free(mean);
  cohort_ndarray_free(variance);
  cohort_ndarray_free(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(other_rows_may_be_written),
      TEST(operators_may_write_other_rows),
      TEST(many_rows_may_be_written),
      TEST(parts_are_recorded),
      TEST(empty_parts_are_constants),
      TEST(parts_are_no_variables),
      TEST(parts_of_overwritten_arrays_are_refused),
      TEST(outputs_may_be_states_of_a_layer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
