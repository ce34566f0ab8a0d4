/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out while work that would write an array is being queued: an array that was invalid stays invalid,
 * one that was valid keeps its values. This program's malloc fails the N-th call. */
#include <errno.h>

#include "support/sanitizer.h"
#include "support/scale_op.h"

#define OWN_MALLOC !UNDER_SANITIZER /* a sanitizer has its own malloc */

static long countdown; /* counts down to the allocation that fails; 0: none does */

/* Whether the failing allocation was reached; later ones succeed. */
static int has_failed(void) {
  const int failed = countdown == 0;

  countdown = 0;
  return failed;
}

#if OWN_MALLOC
extern void *__libc_malloc(size_t);

void *malloc(size_t size) {
  if (countdown == 0 || --countdown > 0) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}
#endif

/* A custom operator fails to write the array. */
static void spoil(cohort_ndarray *output) {
  const char *const keys[] = {"op_type"}, *const values[] = {"scale"};
  cohort_ndarray *inputs[2] = {NULL, counted(SHAPE(1), 0)};
  host self;

  ok(cohort_ndarray_copy(output, NULL, &inputs[0]));

  begin(&self, 0);
  self.fail_forward = 3;
  fails(cohort_operator_invoke("Custom", keys, values, 1, inputs, 2, &output, 1, NULL, NULL), COHORT_ERROR_EXECUTION,
        "");
  cohort_ndarray_free(inputs[0]);
  cohort_ndarray_free(inputs[1]);
  end(&self);
  fails(cohort_ndarray_wait(output), COHORT_ERROR_EXECUTION, "not written");
}

typedef struct {
  cohort_ndarray *source, *target;
  cohort_executor *executor;
} subject;

static cohort_error *by_operator(const subject *of) {
  const char *const key = "scalar", *const value = "1";

  return cohort_operator_invoke("_plus_scalar", &key, &value, 1, &of->source, 1, &of->target, 1, NULL, NULL);
}

static cohort_error *by_copy(const subject *of) { return cohort_ndarray_copy_to(of->source, of->target); }

/* Copies into an argument of an executor. */
static cohort_error *by_load(const subject *of) {
  cohort_arrays *inputs = NULL;
  cohort_error *error = cohort_arrays_create(&inputs);

  if (!error) error = cohort_arrays_add(inputs, "x", of->source);
  if (!error) error = cohort_executor_set_inputs(of->executor, inputs);
  cohort_arrays_free(inputs);
  return error;
}

static void work_that_cannot_be_queued_changes_no_array(void **state) {
  cohort_error *(*const ways[])(const subject *) = {by_operator, by_copy, by_load};
  size_t way;
  int was_bad;

  (void)state;
  only_on_cpus(); /* on other contexts copies run out of memory when they run, and make their target invalid */
  if (!OWN_MALLOC) skip();
  for (way = 0; way < COUNT(ways); ++way) {
    for (was_bad = 0; was_bad < 2; ++was_bad) {
      subject of = {NULL, NULL, NULL};
      cohort_symbol *symbol = node("square", "sq", NO_ATTRS, INPUTS(variable("x")));
      cohort_error *error;
      long failing;

      of.source = floats(SHAPE(2), FLOATS(4, 6));
      of.target = floats(SHAPE(2), FLOATS(7, 7));
      if (was_bad) spoil(of.target);
      ok(cohort_executor_bind(symbol, NULL, &of.target, 1, NULL, NULL, NULL, 0, NULL, &of.executor));
      cohort_symbol_free(symbol);
      for (failing = 1;; ++failing) {
        assert_true(failing < 10000);
        countdown = failing;
        error = ways[way](&of);
        if (!has_failed()) break;
        if (!error) { /* succeeded without it */
          ok(cohort_ndarray_fill(of.target, 7));
          if (was_bad) spoil(of.target);
          continue;
        }
        assert_int_equal(cohort_error_code(error), COHORT_ERROR_OUT_OF_MEMORY);
        cohort_error_free(error);
        if (was_bad) {
          fails(cohort_ndarray_wait(of.target), COHORT_ERROR_EXECUTION, "not written");
        } else {
          holds(of.target, 7, 7);
        }
      }
      ok(error);
      if (way == 0) {
        holds(of.target, 5, 7);
      } else {
        holds(of.target, 4, 6);
      }
      cohort_ndarray_free(of.source);
      cohort_ndarray_free(of.target);
      cohort_executor_free(of.executor);
    }
  }
}

/* One of two outputs can be prepared for writing; the other, which an executor has read, cannot. */
static void outputs_of_one_operator_stay_invalid_together(void **state) {
  const char *const keys[] = {"num_outputs", "axis"}, *const values[] = {"2", "0"};
  cohort_ndarray *source, *targets[2];
  cohort_symbol *symbol;
  cohort_executor *executor = NULL;
  long failing;
  size_t i;

  (void)state;
  if (!OWN_MALLOC) skip();
  source = floats(SHAPE(2), FLOATS(4, 6));
  symbol = node("square", "sq", NO_ATTRS, INPUTS(variable("x")));
  for (i = 0; i < 2; ++i) targets[i] = counted(SHAPE(1), 1);
  ok(cohort_executor_bind(symbol, NULL, &targets[1], 1, NULL, NULL, NULL, 0, NULL, &executor));
  cohort_symbol_free(symbol);
  for (failing = 1;; ++failing) {
    cohort_error *error;

    assert_true(failing < 10000);
    for (i = 0; i < 2; ++i) ok(cohort_ndarray_fill(targets[i], 7));
    ok(cohort_executor_forward(executor, 0));
    for (i = 0; i < 2; ++i) spoil(targets[i]);
    countdown = failing;
    error = cohort_operator_invoke("SliceChannel", keys, values, 2, &source, 1, targets, 2, NULL, NULL);
    if (!has_failed()) break;
    if (!error) continue; /* succeeded without it */
    assert_int_equal(cohort_error_code(error), COHORT_ERROR_OUT_OF_MEMORY);
    cohort_error_free(error);
    for (i = 0; i < 2; ++i) fails(cohort_ndarray_wait(targets[i]), COHORT_ERROR_EXECUTION, "not written");
  }
  holds_free(targets[0], 4);
  holds_free(targets[1], 6);
  cohort_ndarray_free(source);
  cohort_executor_free(executor);
}

/* Outputs and gradients of passes that could not be queued are unchanged, invalid, or those of a complete pass. */
static void outputs_are_never_those_of_no_pass(void **state) {
  cohort_executor *executor;
  long failing;

  (void)state;
  if (!OWN_MALLOC) skip();
  setenv("COHORT_FAULT", "sq", 1);
  executor =
      simple_bind_with(node("square", "sq", NO_ATTRS, INPUTS(variable("x"))), desc("x", SHAPE(2), NULL), "write");
  unsetenv("COHORT_FAULT");
  set_arg(executor, "x", 1, 2);
  ok(cohort_executor_forward(executor, 1));
  fails(cohort_executor_wait(executor), COHORT_ERROR_EXECUTION, "'sq'");
  for (failing = 1;; ++failing) {
    cohort_ndarray *output;
    cohort_error *error;
    int failed;

    assert_true(failing < 10000);
    countdown = failing;
    error = cohort_executor_forward(executor, 1);
    failed = has_failed();
    output = output_of(executor, 0);
    cohort_error_free(error);
    error = cohort_ndarray_wait(output);
    assert_non_null(error);
    cohort_error_free(error);
    cohort_ndarray_free(output);
    error = cohort_executor_wait(executor);
    cohort_error_free(error);
    if (!failed) break;
  }
  cohort_executor_free(executor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(work_that_cannot_be_queued_changes_no_array),
      TEST(outputs_of_one_operator_stay_invalid_together),
      TEST(outputs_are_never_those_of_no_pass),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
