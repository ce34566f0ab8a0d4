/* SPDX-License-Identifier: Apache-2.0 */
/* Custom functions that do other things in the middle of a backward pass: free the tape, overwrite arrays. */
#include "support/boundary.h"

static const int64_t three = 3;

typedef struct host_function {
  cohort_tape *tape;       /* freed in backward, unless NULL */
  cohort_ndarray *written; /* overwritten in backward, unless NULL */
} host_function;

/* The identity's gradient. */
static int32_t give_back(cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
  const host_function *function = user_data;
  cohort_ndarray *head = NULL;

  if (function->tape) cohort_tape_free(function->tape);
  if (function->written) ok(cohort_ndarray_fill(function->written, 100));
  ok(cohort_arrays_get(head_grads, 0, &head));
  ok(cohort_arrays_add(gradients, NULL, head));
  cohort_ndarray_free(head);
  return 0;
}

/* square(x), followed by the custom function. */
static cohort_ndarray *recorded(cohort_tape *tape, cohort_ndarray *x, cohort_ndarray **by_x, host_function *function) {
  cohort_arrays *outputs = NULL;
  cohort_ndarray *square = NULL, *copy = NULL;

  ok(cohort_tape_mark(tape, &x, by_x, NULL, 1));
  ok(cohort_tape_invoke(tape, "square", NULL, NULL, 0, &x, 1, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &square));
  ok(cohort_ndarray_copy(square, NULL, &copy));
  ok(cohort_tape_function(tape, &square, 1, &copy, 1, give_back, NULL, function));
  cohort_arrays_free(outputs);
  cohort_ndarray_free(square);
  return copy;
}

static void overwriting_an_array_that_a_gradient_needs_is_an_error(void **state) {
  static const float x[] = {1, 2, 3}, none[] = {0, 0, 0}, gradient[] = {2, 4, 6};
  cohort_ndarray *array = floats(x, &three, 1), *by_array = floats(none, &three, 1), *output;
  host_function function = {NULL, NULL};
  cohort_tape *tape = NULL;

  (void)state;
  ok(cohort_tape_create(&tape));
  output = recorded(tape, array, &by_array, &function);
  function.written = array;
  fails(cohort_tape_backward(tape, &output, NULL, 1, NULL), COHORT_ERROR_STATE, "overwritten after it was recorded");
  assert_floats(by_array, none, 3);
  cohort_ndarray_free(output);
  ok(cohort_ndarray_write(array, x, sizeof x));
  function.written = NULL;
  output = recorded(tape, array, &by_array, &function);
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
    host_function function = {NULL, NULL};
    cohort_arrays *gradients = NULL;
    cohort_tape *tape = NULL;

    ok(cohort_tape_create(&tape));
    output = recorded(tape, array, &by_array, &function);
    function.tape = tape;
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
      TEST(overwriting_an_array_that_a_gradient_needs_is_an_error),
      TEST(a_tape_may_be_freed_in_its_pass),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
