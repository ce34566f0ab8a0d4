/* SPDX-License-Identifier: Apache-2.0 */
/* Custom functions on tapes: their gradients, their release, and what they may do in the middle of a backward pass:
 * free the tape, overwrite arrays. */
#include "support/boundary.h"
#include "support/tapes.h"

static const int64_t three = 3;

/* ---- gradients and release ---- */

typedef struct host_function {
  cohort_tape *tape;
  cohort_ndarray *input;
  int num_calls, num_releases, status;
} host_function;

/* The gradient of input^2: 2 input head, computed on the tape. */
static int32_t square_backward(cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
  host_function *function = user_data;
  cohort_ndarray *head = NULL, *product, *gradient;

  ++function->num_calls;
  if (function->status) return function->status;
  ok(cohort_arrays_get(head_grads, 0, &head));
  product = apply(function->tape, "elemwise_mul", head, function->input);
  gradient = apply_with(function->tape, "_mul_scalar", "scalar", "2", product);
  fails(cohort_tape_set_recording(function->tape, 0, NULL), COHORT_ERROR_STATE, "a backward pass is running");
  ok(cohort_arrays_add(gradients, NULL, gradient));
  ok(cohort_arrays_add(gradients, NULL, NULL));
  cohort_ndarray_free(head);
  cohort_ndarray_free(product);
  cohort_ndarray_free(gradient);
  return 0;
}

static void count_release(void *user_data) { ++((host_function *)user_data)->num_releases; }

static void functions_of_the_host_have_gradients(void **state) {
  const float x[] = {1, 2, 3}, first[] = {6, 12, 18}, second[] = {6, 6, 6};
  cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *by_a = zeros(3), *inputs[2], *output, *head, *gradient = NULL;
  cohort_arrays *gradients = NULL;
  host_function function = {NULL, NULL, 0, 0, 0};

  (void)state;
  function.tape = tape;
  function.input = a;
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  ok(cohort_tape_set_recording(tape, 0, NULL));
  output = apply(tape, "square", a, NULL);
  ok(cohort_tape_set_recording(tape, 1, NULL));
  inputs[0] = a;
  inputs[1] = by_a; /* a constant */
  fails(cohort_tape_function(tape, inputs, 2, inputs, 1, square_backward, count_release, &function),
        COHORT_ERROR_INVALID_ARGUMENT, "outputs[0]");
  assert_int_equal(function.num_releases, 0);
  ok(cohort_tape_function(tape, inputs, 2, &output, 1, square_backward, count_release, &function));
  head = apply_with(tape, "_mul_scalar", "scalar", "3", output);
  function.status = 7;
  fails(cohort_tape_backward(tape, &head, NULL, 1, NULL), COHORT_ERROR_EXECUTION, "returned 7");
  function.status = 0;
  options.create_graph = 1;
  ok(cohort_tape_grad(tape, &head, NULL, 1, &a, 1, &options, &gradients));
  ok(cohort_arrays_get(gradients, 0, &gradient));
  assert_floats(gradient, first, 3);
  assert_int_equal(function.num_releases, 0);
  backward_along(tape, gradient, 0);
  assert_floats(by_a, second, 3);
  assert_int_equal(function.num_calls, 2);
  cohort_ndarray_free(gradient);
  cohort_arrays_free(gradients);
  cohort_ndarray_free(head);
  cohort_ndarray_free(output);
  assert_int_equal(num_recorded(tape), 0);
  assert_int_equal(function.num_releases, 1);

  output = zeros(3); /* nothing is known of its input */
  ok(cohort_tape_function(tape, &by_a, 1, &output, 1, square_backward, count_release, &function));
  assert_int_equal(function.num_releases, 2);
  ok(cohort_tape_function(tape, inputs, 2, &output, 1, square_backward, count_release, &function));
  cohort_tape_free(tape);
  assert_int_equal(function.num_releases, 3);
  cohort_ndarray_free(output);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
}

/* Returns an array each time, with other numbers in it. */
static int32_t give_again(cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
  host_function *function = user_data;
  const float value = function->num_calls++ ? 10 : 1;

  (void)head_grads;
  put(function->input, value, value, value);
  ok(cohort_arrays_add(gradients, NULL, function->input));
  return 0;
}

static void functions_may_give_one_array_again(void **state) {
  const float x[] = {1, 2, 3}, sum[] = {11, 11, 11};
  cohort_tape *tape = new_tape();
  cohort_ndarray *a = floats(x, &three, 1), *by_a = zeros(3), *first = zeros(3), *second = zeros(3), *both;
  host_function function = {NULL, NULL, 0, 0, 0};

  (void)state;
  function.input = zeros(3);
  mark(tape, a, by_a, COHORT_GRAD_WRITE);
  ok(cohort_tape_function(tape, &a, 1, &first, 1, give_again, NULL, &function));
  ok(cohort_tape_function(tape, &a, 1, &second, 1, give_again, NULL, &function));
  both = apply(tape, "elemwise_add", first, second);
  backward_along(tape, both, 0);
  assert_floats(by_a, sum, 3);
  cohort_ndarray_free(function.input);
  cohort_ndarray_free(both);
  cohort_ndarray_free(first);
  cohort_ndarray_free(second);
  cohort_ndarray_free(a);
  cohort_ndarray_free(by_a);
  cohort_tape_free(tape);
}

static int32_t give_second(cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
  (void)head_grads;
  ok(cohort_arrays_add(gradients, NULL, NULL));
  ok(cohort_arrays_add(gradients, NULL, ((host_function *)user_data)->input));
  return 0;
}

/* Inputs may be on several devices: a gradient is on the device of its input. */
static void gradients_are_where_inputs_are(void **state) {
  const float x[] = {1, 2, 3};
  const cohort_context elsewhere = {COHORT_DEVICE_CPU, 1};
  cohort_tape *tape = new_tape();
  cohort_ndarray *inputs[2] = {NULL, NULL}, *far = NULL, *by_far = NULL, *output = zeros(3);
  host_function function = {NULL, NULL, 0, 0, 0};

  (void)state;
  ok(cohort_ndarray_zeros(&three, 1, COHORT_DTYPE_FLOAT32, &elsewhere, &far));
  ok(cohort_ndarray_zeros(&three, 1, COHORT_DTYPE_FLOAT32, &elsewhere, &by_far));
  mark(tape, far, by_far, COHORT_GRAD_WRITE);
  inputs[0] = floats(x, &three, 1), inputs[1] = far;
  ok(cohort_tape_function(tape, inputs, 2, &output, 1, give_second, NULL, &function));
  function.input = inputs[0];
  fails(cohort_tape_backward(tape, &output, NULL, 1, NULL), COHORT_ERROR_DEVICE, "cpu(1)");
  put(far, 1, 2, 3);
  function.input = far;
  backward_along(tape, output, 0);
  assert_floats(by_far, x, 3);
  cohort_ndarray_free(inputs[0]);
  cohort_ndarray_free(far);
  cohort_ndarray_free(by_far);
  cohort_ndarray_free(output);
  cohort_tape_free(tape);
}

/* ---- functions that do other things in the middle of a backward pass ---- */

typedef struct side_effects {
  cohort_tape *tape;       /* freed in backward, unless NULL */
  cohort_ndarray *written; /* overwritten in backward, unless NULL */
} side_effects;

/* The identity's gradient. */
static int32_t give_back(cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
  const side_effects *effects = user_data;
  cohort_ndarray *head = NULL;

  if (effects->tape) cohort_tape_free(effects->tape);
  if (effects->written) ok(cohort_ndarray_fill(effects->written, 100));
  ok(cohort_arrays_get(head_grads, 0, &head));
  ok(cohort_arrays_add(gradients, NULL, head));
  cohort_ndarray_free(head);
  return 0;
}

/* square(x), followed by the custom function. */
static cohort_ndarray *recorded(cohort_tape *tape, cohort_ndarray *x, cohort_ndarray *by_x, side_effects *effects) {
  cohort_ndarray *square, *copy = NULL;

  mark(tape, x, by_x, COHORT_GRAD_WRITE);
  square = apply(tape, "square", x, NULL);
  ok(cohort_ndarray_copy(square, NULL, &copy));
  ok(cohort_tape_function(tape, &square, 1, &copy, 1, give_back, NULL, effects));
  cohort_ndarray_free(square);
  return copy;
}

static void overwriting_an_array_that_a_gradient_needs_is_an_error(void **state) {
  static const float x[] = {1, 2, 3}, none[] = {0, 0, 0}, gradient[] = {2, 4, 6};
  cohort_ndarray *array = floats(x, &three, 1), *by_array = floats(none, &three, 1), *output;
  side_effects effects = {NULL, NULL};
  cohort_tape *tape = new_tape();

  (void)state;
  output = recorded(tape, array, by_array, &effects);
  effects.written = array;
  fails(cohort_tape_backward(tape, &output, NULL, 1, NULL), COHORT_ERROR_STATE, "overwritten after it was recorded");
  assert_floats(by_array, none, 3);
  cohort_ndarray_free(output);
  ok(cohort_ndarray_write(array, x, sizeof x));
  effects.written = NULL;
  output = recorded(tape, array, by_array, &effects);
  ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
  assert_floats(by_array, gradient, 3);
  cohort_ndarray_free(output);
  cohort_ndarray_free(array);
  cohort_ndarray_free(by_array);
  cohort_tape_free(tape);
}

/* A language's garbage collector may do so: the pass ends as if nothing had been freed. */
static void a_tape_may_be_freed_in_its_pass(void **state) {
  static const float x[] = {1, 2, 3}, none[] = {0, 0, 0}, gradient[] = {2, 4, 6};
  int by_grad;

  (void)state;
  for (by_grad = 0; by_grad < 2; ++by_grad) {
    cohort_ndarray *array = floats(x, &three, 1), *by_array = floats(none, &three, 1), *output;
    side_effects effects = {NULL, NULL};
    cohort_arrays *gradients = NULL;
    cohort_tape *tape = new_tape();

    output = recorded(tape, array, by_array, &effects);
    effects.tape = tape;
    if (by_grad) {
      ok(cohort_tape_grad(tape, &output, NULL, 1, &array, 1, NULL, &gradients));
      cohort_ndarray_free(by_array);
      ok(cohort_arrays_get(gradients, 0, &by_array));
      cohort_arrays_free(gradients);
    } else {
      ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
    }
    assert_floats(by_array, gradient, 3);
    cohort_ndarray_free(output);
    cohort_ndarray_free(array);
    cohort_ndarray_free(by_array);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(functions_of_the_host_have_gradients), TEST(functions_may_give_one_array_again),
      TEST(gradients_are_where_inputs_are),       TEST(overwriting_an_array_that_a_gradient_needs_is_an_error),
      TEST(a_tape_may_be_freed_in_its_pass),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
