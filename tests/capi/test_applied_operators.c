/* SPDX-License-Identifier: Apache-2.0 */
/* Operators applied at once (imperative calls): they are queued in order, by any thread, on arrays that may overlap,
 * and a failure is reported where the array that it should have written is read. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/executor_tests.h"
#include "support/group_tests.h"

/* The output of an operator that has one. */
static cohort_ndarray *apply(const char *op, const char *const *keys, const char *const *values, size_t num_attrs,
                             cohort_ndarray *const *inputs, size_t num_inputs) {
  cohort_arrays *outputs = NULL;
  cohort_ndarray *output = NULL;

  ok(cohort_operator_invoke(op, keys, values, num_attrs, inputs, num_inputs, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &output));
  cohort_arrays_free(outputs);
  return output;
}

static cohort_ndarray *apply_scalar(const char *op, const char *scalar, cohort_ndarray *input) {
  static const char *const key = "scalar";

  return apply(op, &key, &scalar, 1, &input, 1);
}

static void apply_to(const char *op, cohort_ndarray *const *inputs, size_t num_inputs, cohort_ndarray *output) {
  ok(cohort_operator_invoke(op, NULL, NULL, 0, inputs, num_inputs, &output, 1, NULL, NULL));
}

static cohort_ndarray *uniform(const int64_t *shape, int32_t num_axes, uint64_t seed) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_zeros(shape, num_axes, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_fill_uniform(array, -1, 1, seed));
  return array;
}

/* To be freed. */
static float *numbers_of(const cohort_ndarray *array, size_t *out_num) {
  int64_t size = 0;
  float *numbers;

  ok(cohort_ndarray_size(array, &size));
  numbers = malloc((size_t)size * sizeof(float));
  assert_non_null(numbers);
  ok(cohort_ndarray_read(array, numbers, (size_t)size * sizeof(float)));
  *out_num = (size_t)size;
  return numbers;
}

static void assert_same(const cohort_ndarray *found, const cohort_ndarray *expected) {
  size_t num_found, num_expected, i;
  float *a = numbers_of(found, &num_found), *b = numbers_of(expected, &num_expected);

  assert_int_equal(num_found, num_expected);
  for (i = 0; i < num_found; ++i) {
    if (!(a[i] - b[i] <= 1e-5f && b[i] - a[i] <= 1e-5f)) fail_msg("element %zu: expected %g, found %g", i, b[i], a[i]);
  }
  free(a);
  free(b);
}

/* ---- kernels that prefer other layouts
 * ----------------------------------------------------------------------------- */

/* Convolutions and deconvolutions whose kernels want blocked data and weights give the same as a bound network. */
static void convolutions_are_applied(void **state) {
  static const int64_t channels[] = {3, 16, 32};
  size_t c, transposed;

  (void)state;
  for (transposed = 0; transposed < 2; ++transposed) {
    const char *const op = transposed ? "Deconvolution" : "Convolution";

    for (c = 0; c < COUNT(channels); ++c) {
      const char *const keys[] = {"kernel", "num_filter", "pad", "no_bias"};
      const char *const values[] = {"(3, 3)", "32", "(1, 1)", "True"};
      cohort_symbol *symbol =
          node(op, "layer", ATTRS("kernel", "(3, 3)", "num_filter", "32", "pad", "(1, 1)", "no_bias", "True"),
               INPUTS(variable("data"), variable("weight")));
      cohort_executor *executor = simple_bind(symbol, desc("data", SHAPE(4, channels[c], 14, 14), NULL), NULL);
      cohort_ndarray *inputs[2], *expected, *found;
      int round;

      inputs[0] = uniform(SHAPE(4, channels[c], 14, 14), c);
      inputs[1] = transposed ? uniform(SHAPE(channels[c], 32, 3, 3), 9) : uniform(SHAPE(32, channels[c], 3, 3), 9);
      expected = arg_of(executor, "data");
      ok(cohort_ndarray_copy_to(inputs[0], expected));
      cohort_ndarray_free(expected);
      expected = arg_of(executor, "weight");
      ok(cohort_ndarray_copy_to(inputs[1], expected));
      cohort_ndarray_free(expected);
      ok(cohort_executor_forward(executor, 0));
      expected = output_of(executor, 0);
      for (round = 0; round < 2; ++round) {
        found = apply(op, keys, values, COUNT(keys), inputs, 2);
        assert_same(found, expected);
        cohort_ndarray_free(found);
      }
      cohort_ndarray_free(expected);
      cohort_ndarray_free(inputs[0]);
      cohort_ndarray_free(inputs[1]);
      cohort_executor_free(executor);
    }
  }
}

/* ---- several arrays in the same memory
 * ----------------------------------------------------------------------------- */

/* An output may be an input, or overlap one, for every operator: the result is as if it had been computed before any of
 * it is written. */
static void outputs_may_lie_over_inputs(void **state) {
  cohort_ndarray *square = counted(SHAPE(2, 2), 1), *column = counted(SHAPE(4, 1), 1), *pair[2], *rows[2];

  (void)state;
  apply_to("transpose", &square, 1, square);
  holds(square, 0, 2, 1, 3);
  pair[0] = pair[1] = square;
  apply_to("dot", pair, 2, square);
  holds(square, 2, 6, 3, 11);
  apply_to("elemwise_add", pair, 2, square);
  holds(square, 4, 12, 6, 22);
  ok(cohort_ndarray_slice(column, 0, 3, &rows[0]));
  ok(cohort_ndarray_slice(column, 1, 4, &rows[1]));
  apply_to("square", &rows[0], 1, rows[1]); /* overlapping forwards */
  holds(column, 0, 0, 1, 4);
  apply_to("negative", &rows[1], 1, rows[0]); /* overlapping backwards */
  holds(column, 0, -1, -4, 4);
  cohort_ndarray_free(rows[0]);
  cohort_ndarray_free(rows[1]);
  cohort_ndarray_free(square);
  cohort_ndarray_free(column);
}

/* Two outputs in the same memory: the later one is what remains. */
static void outputs_may_lie_over_each_other(void **state) {
  static const char *const keys[] = {"num_outputs", "axis"}, *const values[] = {"2", "0"};
  cohort_ndarray *input = counted(SHAPE(2, 2), 1), *target = counted(SHAPE(1, 2), 1), *targets[2];

  (void)state;
  targets[0] = targets[1] = target;
  ok(cohort_operator_invoke("SliceChannel", keys, values, 2, &input, 1, targets, 2, NULL, NULL));
  holds(target, 2, 3);
  cohort_ndarray_free(input);
  cohort_ndarray_free(target);
}

/* ---- failures -----------------------------------------------------------------------------------------------------
 */

/* Takes elements `index` of two numbers each: a bad index makes the work fail when it runs, small or large. */
static cohort_ndarray *take_outside(cohort_ndarray *data, int64_t num_indices) {
  static const char *const key = "mode", *const raise = "raise";
  cohort_ndarray *inputs[2], *output;

  inputs[0] = data;
  ok(cohort_ndarray_full(SHAPE(num_indices), COHORT_DTYPE_FLOAT32, NULL, 7, &inputs[1]));
  output = apply("take", &key, &raise, 1, inputs, 2);
  cohort_ndarray_free(inputs[1]);
  return output;
}

/* The call that applies an operator does not report its failure; every call that needs the result does, until the array
 * is written again. Work queued before and after on other arrays is not affected. */
static void failures_come_out_with_the_result(void **state) {
  static const int64_t sizes[] = {1, 1 << 20};
  size_t s;

  (void)state;
  for (s = 0; s < COUNT(sizes); ++s) {
    cohort_ndarray *data = counted(SHAPE(2), 1), *before = apply_scalar("_plus_scalar", "1", data), *wide, *wide_before;
    cohort_ndarray *failed, *after, *sound, *pair[2];
    float *const numbers = malloc((size_t)sizes[s] * sizeof(float));
    cohort_arrays *outputs = NULL;
    cohort_error *error;
    int round;

    assert_non_null(numbers);
    wide = uniform(SHAPE(1 << 20), 3);
    wide_before = apply_scalar("_mul_scalar", "0", wide); /* keeps the queue busy */
    failed = take_outside(data, sizes[s]);
    pair[0] = pair[1] = failed;
    error = cohort_operator_invoke("elemwise_add", NULL, NULL, 0, pair, 2, NULL, 0, NULL, &outputs);
    after = NULL;
    if (error) { /* the failure is known by now */
      assert_int_equal(cohort_error_code(error), COHORT_ERROR_EXECUTION);
      cohort_error_free(error);
    } else {
      ok(cohort_arrays_get(outputs, 0, &after));
      cohort_arrays_free(outputs);
    }
    sound = apply_scalar("_mul_scalar", "10", before);
    for (round = 0; round < 3; ++round) {
      fails(cohort_ndarray_read(failed, numbers, (size_t)sizes[s] * sizeof(float)), COHORT_ERROR_EXECUTION, "take");
      if (after) fails(cohort_ndarray_wait(after), COHORT_ERROR_EXECUTION, "take");
      holds(sound, 10, 20);
      holds(before, 1, 2);
      holds(data, 0, 1);
    }
    ok(cohort_wait_all());
    ok(cohort_ndarray_fill(failed, 3));
    ok(cohort_ndarray_read(failed, numbers, (size_t)sizes[s] * sizeof(float)));
    assert_true(numbers[0] == 3);
    if (after) { /* so does an operator that writes it */
      apply_to("elemwise_add", pair, 2, after);
      ok(cohort_ndarray_read(after, numbers, (size_t)sizes[s] * sizeof(float)));
      assert_true(numbers[sizes[s] - 1] == 6);
    }
    free(numbers);
    cohort_ndarray_free(data);
    cohort_ndarray_free(before);
    cohort_ndarray_free(wide);
    cohort_ndarray_free(wide_before);
    cohort_ndarray_free(failed);
    cohort_ndarray_free(after);
    cohort_ndarray_free(sound);
  }
}

/* An operator that works in place, and a copy, on an array that another operator failed to write fail for the same
 * reason; once overwritten the array is good. */
static void failures_go_on_through_copies_and_in_place(void **state) {
  static const int64_t sizes[] = {1, 1 << 20};
  size_t s;

  (void)state;
  for (s = 0; s < COUNT(sizes); ++s) {
    const size_t bytes = (size_t)sizes[s] * sizeof(float);
    cohort_ndarray *data = counted(SHAPE(2), 1), *wide = uniform(SHAPE(1 << 20), 3), *busy, *failed, *copy, *good;
    float *const numbers = malloc(bytes);
    cohort_error *error;
    const char *key = "scalar", *one = "1";

    assert_non_null(numbers);
    busy = apply_scalar("_mul_scalar", "0", wide);
    copy = uniform(SHAPE(sizes[s]), 5);
    good = uniform(SHAPE(sizes[s]), 6);
    failed = take_outside(data, sizes[s]);
    error = cohort_ndarray_copy_to(failed, copy);
    if (!error) fails(cohort_ndarray_read(copy, numbers, bytes), COHORT_ERROR_EXECUTION, "take");
    cohort_error_free(error);
    error = cohort_operator_invoke("_plus_scalar", &key, &one, 1, &failed, 1, &failed, 1, NULL, NULL);
    cohort_error_free(error);
    fails(cohort_ndarray_read(failed, numbers, bytes), COHORT_ERROR_EXECUTION, "take");
    ok(cohort_ndarray_copy_to(good, failed));
    ok(cohort_ndarray_copy_to(good, copy));
    assert_same(failed, good);
    assert_same(copy, good);
    free(numbers);
    cohort_ndarray_free(data);
    cohort_ndarray_free(wide);
    cohort_ndarray_free(busy);
    cohort_ndarray_free(failed);
    cohort_ndarray_free(copy);
    cohort_ndarray_free(good);
  }
}

/* ---- order --------------------------------------------------------------------------------------------------------
 */

/* Large operators, which a worker runs, and small ones, which the caller could run, alternate on the same arrays. The
 * caller frees the intermediate arrays as it goes. */
static void large_and_small_operators_keep_their_order(void **state) {
  enum { LARGE = 1 << 20, ROUNDS = 40 };
  cohort_ndarray *large = NULL, *sum = counted(SHAPE(1), 1), *one, *next, *last;
  float *numbers = malloc(LARGE * sizeof(float));
  int i;

  (void)state;
  assert_non_null(numbers);
  one = floats(SHAPE(1), FLOATS(1));
  ok(cohort_ndarray_zeros(SHAPE(LARGE), COHORT_DTYPE_FLOAT32, NULL, &large));
  for (i = 0; i < ROUNDS; ++i) {
    cohort_ndarray *pair[2];

    next = apply_scalar("_plus_scalar", "1", large);
    cohort_ndarray_free(large);
    large = next;
    ok(cohort_ndarray_slice(large, LARGE - 1, LARGE, &last));
    pair[0] = sum;
    pair[1] = last;
    apply_to("elemwise_add", pair, 2, sum); /* small work on the result of large work */
    pair[0] = last;
    pair[1] = one;
    apply_to("elemwise_sub", pair, 2, last); /* and on what large work reads next */
    cohort_ndarray_free(last);
  }
  ok(cohort_ndarray_read(large, numbers, LARGE * sizeof(float)));
  assert_true(numbers[0] == ROUNDS && numbers[LARGE - 2] == ROUNDS && numbers[LARGE - 1] == 0);
  holds(sum, ROUNDS);
  cohort_ndarray_free(large);
  cohort_ndarray_free(sum);
  cohort_ndarray_free(one);
  free(numbers);
}

/* A random operator draws the same numbers for the same seed, each time, and others for another seed. */
static void random_operators_go_by_their_seed(void **state) {
  static const uint64_t seeds[] = {1, 2, 1, 3, 2};
  cohort_ndarray *ones = NULL;
  float drawn[COUNT(seeds)][64];
  size_t i, j;

  (void)state;
  ok(cohort_ndarray_full(SHAPE(64), COHORT_DTYPE_FLOAT32, NULL, 1, &ones));
  for (i = 0; i < COUNT(seeds); ++i) {
    cohort_invoke_options options = COHORT_INVOKE_OPTIONS_INIT;
    cohort_arrays *outputs = NULL;
    cohort_ndarray *output = NULL;

    options.is_train = 1;
    options.seed = seeds[i];
    ok(cohort_operator_invoke("Dropout", NULL, NULL, 0, &ones, 1, NULL, 0, &options, &outputs));
    ok(cohort_arrays_get(outputs, 0, &output));
    ok(cohort_ndarray_read(output, drawn[i], sizeof(drawn[i])));
    cohort_ndarray_free(output);
    cohort_arrays_free(outputs);
    for (j = 0; j < i; ++j) {
      assert_int_equal(memcmp(drawn[i], drawn[j], sizeof(drawn[i])) == 0, seeds[i] == seeds[j]);
    }
  }
  cohort_ndarray_free(ones);
}

/* ---- threads ------------------------------------------------------------------------------------------------------
 */

enum { NUM_THREADS = 4, NUM_ROUNDS = 300 };

/* From an array, which stays unchanged, to one that is larger by NUM_ROUNDS. */
static void *count_up(void *argument) {
  cohort_ndarray *at = argument;
  int i;

  for (i = 0; i < NUM_ROUNDS; ++i) {
    cohort_ndarray *next = apply_scalar("_plus_scalar", "1", at);

    if (i) cohort_ndarray_free(at);
    at = next;
  }
  return at;
}

/* Any thread may apply operators, several at the same time, also the same operator. */
static void threads_apply_operators_at_once(void **state) {
  static const int64_t lengths[NUM_THREADS] = {3, 3, 100000, 3};
  pthread_t threads[NUM_THREADS];
  cohort_ndarray *starts[NUM_THREADS];
  size_t t;

  (void)state;
  for (t = 0; t < NUM_THREADS; ++t) {
    ok(cohort_ndarray_full(&lengths[t], 1, COHORT_DTYPE_FLOAT32, NULL, (double)t, &starts[t]));
    assert_int_equal(pthread_create(&threads[t], NULL, count_up, starts[t]), 0);
  }
  for (t = 0; t < NUM_THREADS; ++t) {
    void *result = NULL;
    size_t num;
    float *numbers;

    assert_int_equal(pthread_join(threads[t], &result), 0);
    numbers = numbers_of(result, &num);
    assert_int_equal(num, (size_t)lengths[t]);
    assert_true(numbers[0] == NUM_ROUNDS + (float)t && numbers[num - 1] == NUM_ROUNDS + (float)t);
    free(numbers);
    cohort_ndarray_free(result);
    cohort_ndarray_free(starts[t]);
  }
}

#ifndef UNDER_TSAN

static size_t count_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  size_t count = 0;
  const struct dirent *entry;

  assert_non_null(tasks);
  while ((entry = readdir(tasks))) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* Threads that have been joined may still be listed for a moment. */
static void assert_alone(void) {
  int i;

  for (i = 0; i < 5000 && count_threads() > 1; ++i) nanosleep(&(struct timespec){0, 1000000}, NULL);
  assert_int_equal(count_threads(), 1);
}

/* Only large operators start threads; these are not started anew for each call, and end with the last handle. */
static void threads_end_with_the_last_handle(void **state) {
  cohort_ndarray *small, *large = NULL, *next;
  size_t first = 0;
  int i;

  (void)state;
  only_on_cpus();
#ifdef __clang__
  print_message("left out: libomp keeps the threads of its teams\n");
  skip();
#endif
  assert_int_equal(cohort_live_handles(), 0);
  assert_alone();
  small = counted(SHAPE(4), 1);
  next = apply_scalar("_plus_scalar", "1", small);
  cohort_ndarray_free(next);
  assert_int_equal(count_threads(), 1);
  ok(cohort_ndarray_zeros(SHAPE(1 << 20), COHORT_DTYPE_FLOAT32, NULL, &large));
  for (i = 0; i < 20; ++i) {
    next = apply_scalar("_plus_scalar", "1", large);
    cohort_ndarray_free(large);
    large = next;
    ok(cohort_ndarray_wait(large));
    if (i == 0) first = count_threads();
    assert_int_equal(count_threads(), first);
  }
  cohort_ndarray_free(small);
  cohort_ndarray_free(large);
  assert_alone();
}

/* A forked child applies operators to arrays of its own. */
static void children_apply_operators(void **state) {
  cohort_ndarray *large = NULL, *next;
  int status = -1;
  pid_t child;

  (void)state;
  only_on_cpus();
  ok(cohort_ndarray_zeros(SHAPE(1 << 20), COHORT_DTYPE_FLOAT32, NULL, &large));
  next = apply_scalar("_plus_scalar", "1", large); /* the parent's queue is at work */
  child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    cohort_ndarray *mine = NULL;
    float *numbers;
    size_t num;

    alarm(60);
    ok(cohort_ndarray_zeros(SHAPE(1 << 20), COHORT_DTYPE_FLOAT32, NULL, &mine));
    mine = apply_scalar("_plus_scalar", "2", mine);
    numbers = numbers_of(mine, &num);
    _exit(numbers[num - 1] == 2 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  ok(cohort_ndarray_wait(next));
  cohort_ndarray_free(large);
  cohort_ndarray_free(next);
}

#endif

/* If inputs must have equal shapes, the error names the one that differs, by position, and the shape of those before
 * it. */
static void an_input_that_does_not_fit_is_named(void **state) {
  const char *const key = "num_args", *const three = "3", *const ops[] = {"add_n", "stack"};
  cohort_ndarray *inputs[] = {counted(SHAPE(2, 3), 1), counted(SHAPE(2, 3), 1), counted(SHAPE(3, 2), 1)};
  cohort_arrays *outputs = NULL;
  size_t i;

  (void)state;
  fails(cohort_operator_invoke("elemwise_add", NULL, NULL, 0, inputs + 1, 2, NULL, 0, NULL, &outputs),
        COHORT_ERROR_SHAPE, "input 1: expected (2, 3), found (3, 2)");
  for (i = 0; i < COUNT(ops); ++i) {
    fails(cohort_operator_invoke(ops[i], &key, &three, 1, inputs, 3, NULL, 0, NULL, &outputs), COHORT_ERROR_SHAPE,
          "input 2: expected (2, 3), found (3, 2)");
  }
  for (i = 0; i < COUNT(inputs); ++i) cohort_ndarray_free(inputs[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(convolutions_are_applied),
      TEST(an_input_that_does_not_fit_is_named),
      TEST(outputs_may_lie_over_inputs),
      TEST(outputs_may_lie_over_each_other),
      TEST(failures_come_out_with_the_result),
      TEST(failures_go_on_through_copies_and_in_place),
      TEST(large_and_small_operators_keep_their_order),
      TEST(random_operators_go_by_their_seed),
      TEST(threads_apply_operators_at_once),
#ifndef UNDER_TSAN
      TEST(threads_end_with_the_last_handle),
      TEST(children_apply_operators),
#endif
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
