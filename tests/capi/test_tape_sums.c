/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that many recorded operators read: backward adds their gradients up as they come, in memory that does not grow
 * with the number of readers, and with the digits of one sum. */
#include "support/readers.h"

static cohort_ndarray *applied(cohort_tape *tape, const char *op, const char *const *attrs,
                               cohort_ndarray *const *inputs, size_t num_inputs) {
  const char *keys[4], *values[4];
  cohort_arrays *outputs = NULL;
  cohort_ndarray *output = NULL;
  size_t num = 0;

  for (; attrs[2 * num]; ++num) keys[num] = attrs[2 * num], values[num] = attrs[2 * num + 1];
  ok(cohort_tape_invoke(tape, op, keys, values, num, inputs, num_inputs, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &output));
  cohort_arrays_free(outputs);
  return output;
}

/* The same; the one input is freed. */
static cohort_ndarray *applied_to(cohort_tape *tape, const char *op, const char *const *attrs, cohort_ndarray *input) {
  cohort_ndarray *const output = applied(tape, op, attrs, &input, 1);

  cohort_ndarray_free(input);
  return output;
}

static cohort_ndarray *sum_of(cohort_tape *tape, cohort_ndarray *a, cohort_ndarray *b) {
  cohort_ndarray *const both[] = {a, b}, *const sum = applied(tape, "elemwise_add", NO_ATTRS, both, 2);

  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  return sum;
}

/* The sum of everything that `uses` readers of w make, the first with the data of number `first`. */
static cohort_ndarray *summed_readers(cohort_tape *tape, const reader *of, cohort_ndarray *w, int uses, int first) {
  static float values[ELEMENTS];
  cohort_ndarray *total = NULL;
  int k;

  for (k = 0; k < uses; ++k) {
    const size_t count = fill_values(of, first + k, values);
    cohort_ndarray *inputs[2] = {NULL, NULL}, *made;

    inputs[of->weight_first ? 0 : 1] = w;
    if (of->data_axes) inputs[of->weight_first ? 1 : 0] = floats(of->data, of->data_axes, values, count);
    made = applied_to(tape, "sum", NO_ATTRS, applied(tape, of->op, of->attrs, inputs, of->data_axes ? 2 : 1));
    cohort_ndarray_free(of->data_axes ? inputs[of->weight_first ? 1 : 0] : NULL);
    total = total ? sum_of(tape, total, made) : made;
  }
  return total;
}

static void backward_from(cohort_tape *tape, cohort_ndarray *head) {
  ok(cohort_tape_backward(tape, &head, NULL, 1, NULL));
  cohort_ndarray_free(head);
}

typedef struct {
  cohort_tape *tape;
  cohort_ndarray *w, *gradient;
} variable_on_tape;

static variable_on_tape marked(const int64_t *shape, int32_t num_axes, int32_t dtype, cohort_grad_req req) {
  variable_on_tape of = {NULL, NULL, NULL};

  ok(cohort_tape_create(&of.tape));
  ok(cohort_ndarray_zeros(shape, num_axes, dtype, NULL, &of.w));
  ok(cohort_ndarray_zeros(shape, num_axes, dtype, NULL, &of.gradient));
  ok(cohort_ndarray_fill(of.gradient, 100));
  ok(cohort_tape_mark(of.tape, &of.w, &of.gradient, &req, 1));
  return of;
}

static void release(variable_on_tape *of) {
  cohort_tape_free(of->tape);
  cohort_ndarray_free(of->w);
  cohort_ndarray_free(of->gradient);
}

/* The bytes that backward takes at its peak. */
static size_t peak_of_backward(const reader *of, int uses) {
  variable_on_tape v = marked(of->weight, of->weight_axes, COHORT_DTYPE_FLOAT32, COHORT_GRAD_WRITE);
  cohort_device_memory_info before = COHORT_DEVICE_MEMORY_INFO_INIT, after = COHORT_DEVICE_MEMORY_INFO_INIT;
  cohort_ndarray *const head = summed_readers(v.tape, of, v.w, uses, 0);

  ok(cohort_ndarray_wait(head));
  ok(cohort_device_reset_peak_memory(&test_contexts()[0]));
  ok(cohort_device_memory(&test_contexts()[0], &before));
  backward_from(v.tape, head);
  ok(cohort_ndarray_wait(v.gradient));
  ok(cohort_device_memory(&test_contexts()[0], &after));
  release(&v);
  return after.peak_bytes - before.used_bytes;
}

/* There are the running sum and a gradient to be added; the workspace of the operator stays from the call before. What
 * else is in the queue is small. */
static void memory_does_not_grow_with_the_number_of_readers(void **state) {
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(readers); ++i) {
    size_t bytes;

    if (strcmp(readers[i].op, "broadcast_mul") == 0) continue; /* its head gradient is as large as w */
    peak_of_backward(&readers[i], 1);
    bytes = peak_of_backward(&readers[i], 4 * MANY);
    if (bytes > 3 * kValue + kValue / 4) fail_msg("%s: %zu bytes", readers[i].op, bytes);
  }
}

/* Gradients that are computed one from the other do not pile up in the queue, either. */
static void temporaries_are_given_back_as_the_pass_goes(void **state) {
  const size_t limit = (size_t)8 << 20; /* tape.h */

  (void)state;
  only_on_cpus();
  assert_true(peak_of_backward(&readers[5], 4 * MANY) < limit + 4 * kValue + 4 * MANY * kReader);
}

static void read_gradient(const variable_on_tape *of, float *values) {
  ok(cohort_ndarray_read(of->gradient, values, kValue));
}

static void gradient_of(const reader *of, int uses, int first, cohort_grad_req req, float *values) {
  static float again[ELEMENTS];
  int run;

  for (run = 0; run < 2; ++run) {
    variable_on_tape v = marked(of->weight, of->weight_axes, COHORT_DTYPE_FLOAT32, req);

    backward_from(v.tape, summed_readers(v.tape, of, v.w, uses, first));
    read_gradient(&v, run ? again : values);
    release(&v);
  }
  assert_memory_equal(values, again, kValue);
}

static void the_gradient_is_the_sum_of_those_of_the_readers(void **state) {
  static float found[ELEMENTS], added[ELEMENTS], expected[ELEMENTS], part[ELEMENTS];
  const int uses[] = {3, 4, 5, 17};
  size_t i, k, e;
  int u;

  (void)state;
  for (i = 0; i < COUNT(readers); ++i) {
    for (k = 0; k < COUNT(uses); ++k) {
      memset(expected, 0, sizeof(expected));
      for (u = 0; u < uses[k]; ++u) {
        gradient_of(&readers[i], 1, u, COHORT_GRAD_WRITE, part);
        for (e = 0; e < ELEMENTS; ++e) expected[e] += part[e];
      }
      gradient_of(&readers[i], uses[k], 0, COHORT_GRAD_WRITE, found);
      check_gradient(readers[i].op, uses[k], found, expected);
      gradient_of(&readers[i], uses[k], 0, COHORT_GRAD_ADD, added);
      for (e = 0; e < ELEMENTS; ++e) expected[e] += 100;
      check_gradient(readers[i].op, uses[k], added, expected);
    }
  }
}

/* 64 times 1 + 1 / 128 is 64.5. A running sum in bfloat16 could not get further than 64. */
static void sums_in_16_bits_are_rounded_once(void **state) {
  const int32_t types[] = {COHORT_DTYPE_FLOAT16, COHORT_DTYPE_BFLOAT16};
  size_t i;
  int k, creates_graph;

  (void)state;
  for (i = 0; i < COUNT(types); ++i) {
    for (creates_graph = 0; creates_graph < 2; ++creates_graph) {
      variable_on_tape v = marked(SHAPE(SIDE, SIDE), types[i], COHORT_GRAD_WRITE);
      cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
      static float values[ELEMENTS];
      cohort_ndarray *total = NULL, *wide = NULL;

      for (k = 0; k < MANY; ++k) {
        cohort_ndarray *const made = applied(v.tape, "_mul_scalar", ATTRS("scalar", "1.0078125"), &v.w, 1);

        total = total ? sum_of(v.tape, total, made) : made;
      }
      options.create_graph = creates_graph;
      ok(cohort_tape_backward(v.tape, &total, NULL, 1, &options));
      cohort_ndarray_free(total);
      assert_int_equal(dtype_of(v.gradient), types[i]);
      ok(cohort_ndarray_cast(v.gradient, COHORT_DTYPE_FLOAT32, &wide));
      ok(cohort_ndarray_read(wide, values, sizeof(values)));
      assert_true(values[0] == 64.5f && values[ELEMENTS - 1] == 64.5f);
      cohort_ndarray_free(wide);
      release(&v);
    }
  }
}

/* y = 8 * w^3, from eight readers: its second gradient is 48 * w. */
static void recorded_sums_can_be_differentiated(void **state) {
  cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
  variable_on_tape v = marked(SHAPE(2), COHORT_DTYPE_FLOAT32, COHORT_GRAD_WRITE);
  cohort_ndarray *total = NULL, *slope = NULL;
  cohort_arrays *slopes = NULL;
  int k;

  (void)state;
  ok(cohort_ndarray_write(v.w, (const float[]){2, -3}, 2 * sizeof(float)));
  for (k = 0; k < 8; ++k) {
    cohort_ndarray *const made = applied(v.tape, "_power_scalar", ATTRS("scalar", "3"), &v.w, 1);

    total = total ? sum_of(v.tape, total, made) : made;
  }
  options.create_graph = 1;
  ok(cohort_tape_grad(v.tape, &total, NULL, 1, &v.w, 1, &options, &slopes));
  cohort_ndarray_free(total);
  ok(cohort_arrays_get(slopes, 0, &slope));
  cohort_arrays_free(slopes);
  holds(slope, 96, 216);
  backward_from(v.tape, slope);
  holds(v.gradient, 96, -144);
  release(&v);
}

/* A gradient that several arrays share, and one that a caller has, are not changed by sums. */
static void sums_do_not_change_gradients_that_others_read(void **state) {
  cohort_tape *tape = NULL;
  cohort_ndarray *a = counted(SHAPE(2), 1), *b = counted(SHAPE(2), 1), *both[2], *head_grad = counted(SHAPE(2), 1);
  cohort_ndarray *total = NULL, *gradient = NULL;
  cohort_arrays *gradients = NULL;
  int k;

  (void)state;
  both[0] = a, both[1] = b;
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, both, NULL, NULL, 2));
  for (k = 0; k < 5; ++k) { /* the gradient of the sum goes to a and b as it is, and to the sum before */
    cohort_ndarray *const made = applied(tape, "elemwise_add", NO_ATTRS, both, 2);

    total = total ? sum_of(tape, total, made) : made;
  }
  ok(cohort_tape_grad(tape, &total, &head_grad, 1, both, 2, NULL, &gradients));
  for (k = 0; k < 2; ++k) {
    ok(cohort_arrays_get(gradients, (size_t)k, &gradient));
    holds_free(gradient, 0, 5);
  }
  holds_free(head_grad, 0, 1);
  cohort_arrays_free(gradients);
  cohort_ndarray_free(total);
  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  cohort_tape_free(tape);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(memory_does_not_grow_with_the_number_of_readers),
      TEST(temporaries_are_given_back_as_the_pass_goes),
      TEST(the_gradient_is_the_sum_of_those_of_the_readers),
      TEST(sums_in_16_bits_are_rounded_once),
      TEST(recorded_sums_can_be_differentiated),
      TEST(sums_do_not_change_gradients_that_others_read),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
