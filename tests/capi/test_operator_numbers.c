/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers at the limits of their types: steps, offsets and counts in attributes, labels and indices in arrays, sums
 * that overflow integers. Each has a documented result, or is refused. */
#include <math.h>
#include <stdio.h>

#include "support/executor_tests.h"

#define LARGEST "9223372036854775807"
#define SMALLEST "-9223372036854775808"

/* Applies an operator with keys and values alternately to arrays, which are freed, and returns its first output. */
static cohort_error *apply(const char *op, const char *const *attrs, cohort_ndarray *const *inputs,
                           cohort_ndarray **out) {
  const char *keys[8], *values[8];
  cohort_arrays *outputs = NULL;
  cohort_error *error;
  size_t num_attrs = 0, num_inputs = 0, i;

  for (; attrs[2 * num_attrs]; ++num_attrs) {
    keys[num_attrs] = attrs[2 * num_attrs];
    values[num_attrs] = attrs[2 * num_attrs + 1];
  }
  while (inputs[num_inputs]) ++num_inputs;
  error = cohort_operator_invoke(op, keys, values, num_attrs, inputs, num_inputs, NULL, 0, NULL, &outputs);
  if (!error) ok(cohort_arrays_get(outputs, 0, out));
  cohort_arrays_free(outputs);
  for (i = 0; i < num_inputs; ++i) cohort_ndarray_free(inputs[i]);
  return error;
}

#define ARRAYS(...) \
  (cohort_ndarray *const[]) { __VA_ARGS__, NULL }
#define NO_ARRAYS \
  (cohort_ndarray *const[]) { NULL }

static cohort_ndarray *applied(const char *op, const char *const *attrs, cohort_ndarray *const *inputs) {
  cohort_ndarray *out = NULL;

  ok(apply(op, attrs, inputs, &out));
  return out;
}

static void refused(const char *op, const char *const *attrs, cohort_ndarray *input, int32_t code, const char *words) {
  cohort_ndarray *out = NULL;

  fails(apply(op, attrs, ARRAYS(input), &out), code, words);
  assert_null(out);
}

static cohort_ndarray *int64s(const int64_t *values, int64_t count) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_from_host(values, (size_t)count * sizeof(int64_t), &count, 1, COHORT_DTYPE_INT64, NULL, &array));
  return array;
}

static void holds_int64s(cohort_ndarray *array, const int64_t *values, size_t count) {
  int64_t found[16];
  size_t i;

  assert_true(count <= 16);
  ok(cohort_ndarray_read(array, found, count * sizeof(int64_t)));
  for (i = 0; i < count; ++i) assert_true(found[i] == values[i]);
  cohort_ndarray_free(array);
}

static void slices_take_any_step_and_end(void **state) {
  (void)state;
  holds_free(applied("slice", ATTRS("begin", "(0,)", "end", "(" LARGEST ",)"), ARRAYS(counted(SHAPE(3), 1))), 0, 1, 2);
  holds_free(applied("slice", ATTRS("begin", "(1,)", "end", "(" LARGEST ",)", "step", "(" LARGEST ",)"),
                     ARRAYS(counted(SHAPE(3), 1))),
             1);
  holds_free(applied("slice", ATTRS("begin", "(1,)", "end", "(" SMALLEST ",)", "step", "(" SMALLEST ",)"),
                     ARRAYS(counted(SHAPE(3), 1))),
             1);
  holds_free(applied("slice", ATTRS("begin", "(0, 2)", "end", "(" LARGEST ", None)", "step", "(" LARGEST ", -2)"),
                     ARRAYS(counted(SHAPE(2, 3), 1))),
             2, 0);
  holds_free(applied("slice", ATTRS("begin", "(" LARGEST ",)", "end", "(" SMALLEST ",)", "step", "(-2,)"),
                     ARRAYS(counted(SHAPE(4), 1))),
             3, 1);
  holds_free(applied("_slice_assign_scalar",
                     ATTRS("begin", "(1,)", "end", "(" LARGEST ",)", "step", "(" LARGEST ",)", "scalar", "7"),
                     ARRAYS(counted(SHAPE(3), 1))),
             0, 7, 2);
  refused("slice_axis", ATTRS("axis", "0", "begin", "1", "end", LARGEST), counted(SHAPE(3), 1),
          COHORT_ERROR_INVALID_ARGUMENT, "end " LARGEST);
  refused("slice_axis", ATTRS("axis", "0", "begin", SMALLEST, "end", "2"), counted(SHAPE(3), 1),
          COHORT_ERROR_INVALID_ARGUMENT, "begin " SMALLEST);
}

static void windows_that_end_beyond_all_numbers_are_refused(void **state) {
  static const char *const offsets[] = {"(" LARGEST ", 0)", "(9223372036854775806, 0)", "(" SMALLEST ", 0)", "(3, 0)"};
  static const char *const windows[] = {"(" LARGEST ", 1)", "(" SMALLEST ", 1)", "(0, 1)", "(5, 1)"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(offsets); ++i) {
    refused("Crop", ATTRS("num_args", "1", "offset", offsets[i], "h_w", "(2, 2)"), counted(SHAPE(1, 1, 4, 4), 1),
            COHORT_ERROR_SHAPE, "offset of 0 to 2");
    refused("Crop", ATTRS("num_args", "1", "h_w", windows[i]), counted(SHAPE(1, 1, 4, 4), 1), COHORT_ERROR_SHAPE,
            "window of 1 to 4");
    refused("Crop", ATTRS("num_args", "1", "h_w", windows[i], "center_crop", "True"), counted(SHAPE(1, 1, 4, 4), 1),
            COHORT_ERROR_SHAPE, "window of 1 to 4");
  }
  holds_free(applied("Crop", ATTRS("num_args", "1", "offset", "(2, 1)", "h_w", "(2, 2)"),
                     ARRAYS(counted(SHAPE(1, 1, 4, 4), 1))),
             9, 10, 13, 14);
}

static void a_diagonal_may_lie_anywhere(void **state) {
  (void)state;
  holds_free(applied("_eye", ATTRS("N", "2", "k", LARGEST), NO_ARRAYS), 0, 0, 0, 0);
  holds_free(applied("_eye", ATTRS("N", "2", "k", SMALLEST), NO_ARRAYS), 0, 0, 0, 0);
  holds_free(applied("_eye", ATTRS("N", "2", "M", "3", "k", "1"), NO_ARRAYS), 0, 1, 0, 0, 0, 1);
}

static void more_numbers_than_can_be_counted_are_refused(void **state) {
  cohort_ndarray *out = NULL;

  (void)state;
  fails(apply("_arange", ATTRS("start", "0", "stop", "1e15", "repeat", "1073741824"), NO_ARRAYS, &out),
        COHORT_ERROR_SHAPE, "2^63");
  assert_null(out);
}

/* Class numbers are truncated to integers, as in MXNet; a number that is no class changes no gradient. */
static void labels_that_are_no_class_count_as_out_of_range(void **state) {
  static const float labels[] = {0.5f, -0.5f, 1, -1, 2, 5, 1e10f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN};
  static const float wanted[][2] = {{1, 0}, {1, 0}, {0, 1}}; /* of the others: none */
  size_t i, k;

  (void)state;
  for (i = 0; i < COUNT(labels); ++i) {
    cohort_descs *known = desc("data", SHAPE(1, 2), NULL);
    cohort_executor *executor;
    float gradient[2];
    cohort_ndarray *grad;

    executor = simple_bind_with(node("SoftmaxOutput", "loss", NO_ATTRS, INPUTS(variable("data"))), known, "write");
    set_array(executor, COHORT_EXECUTOR_ARGS, "loss_label", &labels[i], 1);
    ok(cohort_executor_forward(executor, 1));
    ok(cohort_executor_backward(executor, NULL, 0, 1));
    grad = grad_of(executor, "data");
    ok(cohort_ndarray_read(grad, gradient, sizeof(gradient)));
    cohort_ndarray_free(grad);
    for (k = 0; k < 2; ++k) {
      const float expected = 0.5f - (i < COUNT(wanted) ? wanted[i][k] : 0);

      if (gradient[k] != expected) {
        fail_msg("label %g, class %zu: expected %g, found %g", (double)labels[i], k, (double)expected,
                 (double)gradient[k]);
      }
    }
    cohort_executor_free(executor);
  }
}

/* An ignored label is recognised by its integer part too, and one out of range is not taken for it. */
static void labels_out_of_range_are_not_the_ignored_one(void **state) {
  const char *const attrs[] = {"use_ignore", "True", "ignore_label", "0", "normalization", "valid", NULL};
  cohort_executor *executor = simple_bind_with(node("SoftmaxOutput", "loss", attrs, INPUTS(variable("data"))),
                                               desc("data", SHAPE(4, 2), NULL), "write");

  (void)state;
  set_arg(executor, "loss_label", 0.5f, NAN, 1, INFINITY);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  holds_free(grad_of(executor, "data"), 0, 0, 0.5f / 3, 0.5f / 3, 0.5f / 3, -0.5f / 3, 0.5f / 3, 0.5f / 3);
  cohort_executor_free(executor);
}

/* An index that is clipped becomes the nearest valid one, whatever its size. */
static void indices_that_no_integer_holds_are_clipped_to_the_nearest(void **state) {
#define INDICES floats(SHAPE(6), FLOATS(1e30f, -1e30f, INFINITY, -INFINITY, 1.9f, -0.5f))
  (void)state;
  holds_free(applied("take", NO_ATTRS, ARRAYS(counted(SHAPE(3), 1), INDICES)), 2, 0, 2, 0, 1, 0);
  holds_free(applied("Embedding", ATTRS("input_dim", "3", "output_dim", "1"), ARRAYS(INDICES, counted(SHAPE(3, 1), 1))),
             2, 0, 2, 0, 1, 0);
  holds_free(applied("one_hot", ATTRS("depth", "2"), ARRAYS(INDICES)), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0);
  holds_free(applied("SequenceMask", ATTRS("use_sequence_length", "True", "value", "-1"),
                     ARRAYS(floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)), floats(SHAPE(2), FLOATS(1e30f, -1e30f)))),
             1, -1, 3, -1);
}

/* Remainders have the sign of the divisor, and zeros have the sign that MXNet's have. In every type, and in vector
 * loops as well as in their remainder loops. */
static void remainders_of_zeros_and_infinities(void **state) {
  static const double table[][3] = {{-4, 2, 0.0},
                                    {4, -2, 0.0},
                                    {-4, -2, -0.0},
                                    {4, 2, 0.0},
                                    {-0.0, 2, -0.0},
                                    {-0.0, -2, 0.0},
                                    {0.0, -2, 0.0},
                                    {0.0, 2, 0.0},
                                    {-7.5, 2, 0.5},
                                    {7.5, -2, -0.5},
                                    {-7.5, -2, -1.5},
                                    {-1, INFINITY, INFINITY},
                                    {1, -INFINITY, -INFINITY},
                                    {-1, -INFINITY, -1},
                                    {1, INFINITY, 1},
                                    {INFINITY, 2, NAN},
                                    {-INFINITY, 2, NAN},
                                    {3, 0.0, 0.0},
                                    {-3, -0.0, 0.0},
                                    {NAN, 2, NAN},
                                    {2, NAN, NAN}};
  static const int32_t types[] = {COHORT_DTYPE_FLOAT16, COHORT_DTYPE_FLOAT32, COHORT_DTYPE_FLOAT64};
  enum { kForms = 4, kLength = 37 };
  const int64_t length = kLength, one = 1;
  double values[2][kLength], found[kLength];
  char number[32];
  size_t row, t, i;
  int form;

  (void)state;
  for (row = 0; row < COUNT(table); ++row) {
    for (t = 0; t < COUNT(types); ++t) {
      for (form = 0; form < kForms; ++form) {
        static const char *const ops[] = {"_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar"};
        cohort_ndarray *inputs[3] = {NULL, NULL, NULL}, *wide, *out, *all = NULL;

        for (i = 0; i < kLength; ++i) values[0][i] = table[row][0], values[1][i] = table[row][1];
        for (i = 0; i < 2; ++i) {
          const int64_t *const shape = form == 1 && i == 1 ? &one : &length;

          if (form == 3 ? i == 0 : form == 2 && i == 1) continue;
          ok(cohort_ndarray_from_host(values[i], (size_t)*shape * sizeof(double), shape, 1, COHORT_DTYPE_FLOAT64, NULL,
                                      &wide));
          ok(cohort_ndarray_cast(wide, types[t], &inputs[form == 3 ? 0 : i]));
          cohort_ndarray_free(wide);
        }
        snprintf(number, sizeof number, "%g", table[row][form == 3 ? 0 : 1]);
        out = applied(ops[form], form < 2 ? NO_ATTRS : ATTRS("scalar", number), inputs);
        ok(cohort_ndarray_cast(out, COHORT_DTYPE_FLOAT64, &all));
        ok(cohort_ndarray_read(all, found, sizeof found));
        for (i = 0; i < kLength; ++i) {
          const double expected = table[row][2];

          if (isnan(expected) ? isnan(found[i]) : found[i] == expected && !signbit(found[i]) == !signbit(expected))
            continue;
          fail_msg("%s of %g and %g in type %d, element %zu: expected %g, found %g", ops[form], table[row][0],
                   table[row][1], (int)types[t], i, expected, found[i]);
        }
        cohort_ndarray_free(out);
        cohort_ndarray_free(all);
      }
    }
  }
}

/* Integers wrap around when added, in every kernel that adds them in their own type. */
static void sums_of_integers_wrap(void **state) {
  const int64_t large[] = {INT64_MAX, 1}, smallest[] = {INT64_MIN}, running[] = {INT64_MAX, INT64_MIN};

  (void)state;
  holds_int64s(applied("_backward_gather_nd", ATTRS("shape", "(1,)"),
                       ARRAYS(int64s(large, 2), floats(SHAPE(1, 2), FLOATS(0, 0)))),
               smallest, 1);
  holds_int64s(applied("cumsum", NO_ATTRS, ARRAYS(int64s(large, 2))), running, 2);
}

/* Binds an operator on inputs of one type, all with gradients, and runs it forward and backward. Frees arrays. */
static cohort_executor *forward_and_back(const char *op, const char *const *attrs, int32_t type,
                                         cohort_ndarray *const *inputs, cohort_ndarray *head) {
  cohort_ndarray *args[2] = {NULL, NULL}, *grads[2] = {NULL, NULL}, *cast = NULL;
  const int32_t reqs[2] = {COHORT_GRAD_WRITE, COHORT_GRAD_WRITE};
  cohort_symbol *symbol =
      node(op, "n", attrs, inputs[1] ? INPUTS(variable("a"), variable("b")) : INPUTS(variable("a")));
  cohort_executor *executor = NULL;
  size_t num = inputs[1] ? 2 : 1, i;

  for (i = 0; i < num; ++i) {
    ok(cohort_ndarray_cast(inputs[i], type, &args[i]));
    ok(cohort_ndarray_cast(inputs[i], type, &grads[i]));
    cohort_ndarray_free(inputs[i]);
  }
  ok(cohort_executor_bind(symbol, NULL, args, num, grads, reqs, NULL, 0, NULL, &executor));
  cohort_symbol_free(symbol);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_ndarray_cast(head, type, &cast));
  cohort_ndarray_free(head);
  ok(try_backward_with(executor, cast, 1));
  for (i = 0; i < num; ++i) {
    cohort_ndarray_free(args[i]);
    cohort_ndarray_free(grads[i]);
  }
  return executor;
}

static cohort_ndarray *gradient_as_floats(const cohort_executor *executor, const char *name) {
  cohort_ndarray *gradient = grad_of(executor, name), *wide = NULL;

  ok(cohort_ndarray_cast(gradient, COHORT_DTYPE_FLOAT32, &wide));
  cohort_ndarray_free(gradient);
  return wide;
}

/* NaN passes backward through a rectifier as it passes forward, in every type, for few elements and for many. */
static void no_number_goes_back_through_a_rectifier(void **state) {
  static const int32_t types[] = {COHORT_DTYPE_FLOAT16, COHORT_DTYPE_FLOAT32, COHORT_DTYPE_FLOAT64};
  enum { kLength = 5003 };
  static float x[kLength], twos[kLength], found[kLength];
  size_t t, i;
  int form;

  (void)state;
  for (i = 0; i < kLength; ++i) x[i] = i % 5 == 2 ? NAN : i % 5 == 3 ? INFINITY : (float)(i % 5) - 1, twos[i] = 2;
  for (t = 0; t < COUNT(types); ++t) {
    for (form = 0; form < 4; ++form) {
      const size_t length = form < 2 ? 11 : kLength;
      cohort_executor *executor = forward_and_back(
          form % 2 ? "Activation" : "relu", form % 2 ? ATTRS("act_type", "relu") : NO_ATTRS, types[t],
          ARRAYS(floats(SHAPE((int64_t)length), x, length)), floats(SHAPE((int64_t)length), twos, length));
      cohort_ndarray *gradient, *output, *wide = NULL;

      output = output_of(executor, 0);
      ok(cohort_ndarray_cast(output, COHORT_DTYPE_FLOAT32, &wide));
      cohort_ndarray_free(output);
      ok(cohort_ndarray_read(wide, found, length * sizeof(float)));
      cohort_ndarray_free(wide);
      for (i = 0; i < length; ++i) {
        if (isnan(x[i]) ? isnan(found[i]) : found[i] == (x[i] > 0 ? x[i] : 0)) continue;
        fail_msg("type %d, form %d, element %zu: %g becomes %g", (int)types[t], form, i, (double)x[i],
                 (double)found[i]);
      }
      gradient = gradient_as_floats(executor, "a");
      ok(cohort_ndarray_read(gradient, found, length * sizeof(float)));
      for (i = 0; i < length; ++i) {
        if (isnan(x[i]) ? isnan(found[i]) : found[i] == (x[i] > 0 ? 2 : 0)) continue;
        fail_msg("type %d, form %d, element %zu: found %g at %g", (int)types[t], form, i, (double)found[i],
                 (double)x[i]);
      }
      cohort_ndarray_free(gradient);
      cohort_executor_free(executor);
    }
  }
}

/* A layer with a fused rectifier passes NaN on or gives 0, depending on the kernel: here no sum of the layer is NaN. */
static void a_layer_makes_no_other_number_of_none(void **state) {
  int convolution;
  size_t i;

  (void)state;
  for (convolution = 0; convolution < 2; ++convolution) {
    cohort_symbol *layer =
        convolution
            ? node("Convolution", "layer", ATTRS("num_filter", "16", "kernel", "(3, 3)"), INPUTS(variable("data")))
            : node("FullyConnected", "layer", ATTRS("num_hidden", "16"), INPUTS(variable("data")));
    cohort_executor *executor = simple_bind(node("Activation", "rectifier", ATTRS("act_type", "relu"), INPUTS(layer)),
                                            desc("data", SHAPE(2, 16, 3, 3), NULL), NULL);
    cohort_ndarray *data = arg_of(executor, "data"), *output;
    float found[2 * 16];

    ok(cohort_ndarray_fill(data, NAN));
    cohort_ndarray_free(data);
    ok(cohort_executor_forward(executor, 0));
    output = output_of(executor, 0);
    ok(cohort_ndarray_read(output, found, sizeof(found)));
    for (i = 0; i < COUNT(found); ++i) assert_true(found[i] == 0 || isnan(found[i]));
    cohort_ndarray_free(output);
    cohort_executor_free(executor);
  }
}

/* Long rows of softmax, compared with e^x in double: of ordinary numbers, with a large one, and with ones whose
 * exponential underflows. */
static void long_rows_of_softmax(void **state) {
  static const int64_t lengths[] = {257, 300, 448, 511, 512, 1000};
  static const float odd[] = {0, 50, -1000, -1e30f, -INFINITY};
  enum { kMost = 1000 };
  static float x[kMost], found[kMost];
  size_t l, o, i;

  (void)state;
  for (l = 0; l < COUNT(lengths); ++l) {
    for (o = 0; o < COUNT(odd); ++o) {
      const size_t length = (size_t)lengths[l];
      /* Rounding errors of the difference to the largest number, of its exponential and of some sums. */
      const double tolerance = (60 + 4 + (double)length / 64 + 8) * 0x1p-24;
      cohort_ndarray *y;
      double sum = 0, top = -INFINITY;

      for (i = 0; i < length; ++i) x[i] = (float)(i * 37 % 101) / 10 - 5;
      x[length - 3] = odd[o];
      for (i = 0; i < length; ++i) top = fmax(top, x[i]);
      for (i = 0; i < length; ++i) sum += exp(x[i] - top);
      y = applied("softmax", NO_ATTRS, ARRAYS(floats(SHAPE(1, lengths[l]), x, length)));
      ok(cohort_ndarray_read(y, found, length * sizeof(float)));
      for (i = 0; i < length; ++i) {
        const double expected = exp(x[i] - top) / sum;

        if (fabs(found[i] - expected) <= tolerance * expected) continue;
        fail_msg("length %zu, odd number %g, element %zu: expected %.9g, found %.9g", length, (double)odd[o], i,
                 expected, (double)found[i]);
      }
      cohort_ndarray_free(y);
    }
  }
}

/* A remainder of integers has no gradient, one of floats has. */
static void remainders_of_integers_have_no_gradient(void **state) {
  static const int32_t types[] = {COHORT_DTYPE_INT8, COHORT_DTYPE_INT32, COHORT_DTYPE_INT64, COHORT_DTYPE_FLOAT32};
  static const char *const ops[] = {"_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar"};
  size_t t, form;

  (void)state;
  for (t = 0; t < COUNT(types); ++t) {
    for (form = 0; form < COUNT(ops); ++form) {
      const int is_float = types[t] == COHORT_DTYPE_FLOAT32;
      cohort_ndarray *a = floats(SHAPE(3), FLOATS(7, -7, 3)), *b = NULL;
      cohort_executor *executor;

      if (form < 2) b = floats(SHAPE(3), FLOATS(3, 3, -2));
      executor = forward_and_back(ops[form], form < 2 ? NO_ATTRS : ATTRS("scalar", "17"), types[t],
                                  form < 2 ? ARRAYS(a, b) : ARRAYS(a), floats(SHAPE(3), FLOATS(1, 2, 3)));
      if (!is_float) {
        holds_free(gradient_as_floats(executor, "a"), 0, 0, 0);
        if (b) holds_free(gradient_as_floats(executor, "b"), 0, 0, 0);
      } else if (form == 3) {
        holds_free(gradient_as_floats(executor, "a"), -2, 6, -15);
      } else {
        holds_free(gradient_as_floats(executor, "a"), 1, 2, 3);
        if (b) holds_free(gradient_as_floats(executor, "b"), -2, 6, 6);
      }
      cohort_executor_free(executor);
    }
  }
}

static cohort_ndarray *divided_as(int32_t type, cohort_ndarray *values) {
  cohort_ndarray *typed = NULL, *divided, *wide = NULL;

  ok(cohort_ndarray_cast(values, type, &typed));
  divided = applied("_contrib_div_sqrt_dim", NO_ATTRS, ARRAYS(typed));
  ok(cohort_ndarray_cast(divided, COHORT_DTYPE_FLOAT32, &wide));
  cohort_ndarray_free(values);
  cohort_ndarray_free(divided);
  return wide;
}

/* Integers divide by the root of the length rounded down. */
static void whole_numbers_divide_by_a_whole_root(void **state) {
  static const int32_t types[] = {COHORT_DTYPE_INT32, COHORT_DTYPE_INT64, COHORT_DTYPE_INT8, COHORT_DTYPE_UINT8};
  size_t t;

  (void)state;
  for (t = 0; t < COUNT(types); ++t) {
    holds_free(divided_as(types[t], floats(SHAPE(3), FLOATS(1, 2, 3))), 1, 2, 3);
    holds_free(divided_as(types[t], floats(SHAPE(5), FLOATS(1, 2, 3, 100, 7))), 0, 1, 1, 50, 3);
    holds_free(divided_as(types[t], floats(SHAPE(9), FLOATS(1, 2, 3, 127, 8, 9, 10, 11, 12))), 0, 0, 1, 42, 2, 3, 3, 3,
               4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(slices_take_any_step_and_end),
      TEST(windows_that_end_beyond_all_numbers_are_refused),
      TEST(a_diagonal_may_lie_anywhere),
      TEST(more_numbers_than_can_be_counted_are_refused),
      TEST(labels_that_are_no_class_count_as_out_of_range),
      TEST(labels_out_of_range_are_not_the_ignored_one),
      TEST(indices_that_no_integer_holds_are_clipped_to_the_nearest),
      TEST(remainders_of_zeros_and_infinities),
      TEST(sums_of_integers_wrap),
      TEST(no_number_goes_back_through_a_rectifier),
      TEST(a_layer_makes_no_other_number_of_none),
      TEST(long_rows_of_softmax),
      TEST(remainders_of_integers_have_no_gradient),
      TEST(whole_numbers_divide_by_a_whole_root),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
