/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and deconvolutions in groups, and their gradients: of small whole numbers, whose sums are exact in
 * float32 and float64 alike, and rounded once in bfloat16. So every type has the same numbers, whatever computes them.
 */
#include <stdio.h>

#include "support/executor_tests.h"

typedef struct layer {
  const char *op, *what;
  int64_t data[5];
  int num_axes;
  const char *sizes; /* kernel stride pad dilate num_filter num_group, then "bias" and a layout, if it has them */
} layer;

static const layer layers[] = {
    {"Convolution", "fours", {2, 32, 9, 9}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 32 8"},
    {"Convolution", "fours, strides", {2, 32, 9, 9}, 4, "(3, 3) (2, 2) (1, 1) (2, 2) 32 8 bias"},
    {"Convolution", "four to eight", {2, 32, 7, 5}, 4, "(3, 1) (1, 1) (1, 0) (1, 1) 64 8"},
    {"Convolution", "eight to four", {2, 64, 7, 5}, 4, "(1, 3) (1, 1) (0, 1) (1, 1) 32 8 bias"},
    {"Convolution", "groups of twelve", {1, 48, 6, 6}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 48 4"},
    {"Convolution", "fours, one axis", {3, 32, 20}, 3, "(3,) (1,) (1,) (1,) 32 8"},
    {"Convolution", "fours, three axes", {1, 16, 4, 5, 6}, 5, "(3, 2, 3) (1, 1, 2) (1, 0, 1) (1, 1, 1) 16 4 bias"},
    {"Convolution", "fours, channels last", {2, 6, 7, 24}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 24 6 bias NHWC"},
    {"Convolution", "alone", {2, 32, 3, 3}, 4, "(3, 3) (1, 1) (1, 1) (2, 2) 32 32 bias"},
    {"Convolution", "beyond the image", {2, 48, 2, 2}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 48 48"},
    {"Convolution", "long rows", {2, 48, 5, 40}, 4, "(5, 5) (1, 1) (2, 2) (1, 1) 48 48"},
    {"Convolution", "window of eleven", {1, 16, 12, 13}, 4, "(11, 11) (2, 1) (5, 5) (1, 1) 16 16"},
    {"Convolution", "window of twelve", {1, 16, 12, 13}, 4, "(12, 12) (1, 2) (6, 6) (1, 1) 16 16"},
    {"Convolution", "strides and dilation", {2, 32, 9, 70}, 4, "(3, 3) (2, 3) (1, 2) (1, 2) 32 32 bias"},
    {"Convolution", "no whole block", {2, 29, 6, 7}, 4, "(3, 3) (1, 1) (2, 2) (2, 2) 29 29 bias"},
    {"Convolution", "alone, channels last", {2, 6, 7, 23}, 4, "(5, 3) (1, 2) (2, 1) (1, 1) 23 23 bias NHWC"},
    {"Convolution", "alone, one axis", {2, 20, 15}, 3, "(3,) (2,) (1,) (1,) 20 20"},
    {"Convolution", "alone, three axes", {1, 20, 4, 5, 6}, 5, "(3, 3, 3) (1, 2, 1) (1, 1, 1) (1, 1, 2) 20 20 bias"},
    {"Deconvolution", "alone", {2, 32, 5, 5}, 4, "(4, 4) (2, 2) (1, 1) (1, 1) 32 32 bias"},
    {"Deconvolution", "fours", {2, 32, 5, 6}, 4, "(3, 3) (2, 1) (1, 1) (1, 1) 32 8 bias"},
    {"Deconvolution", "no whole block", {2, 21, 5, 5}, 4, "(4, 4) (2, 2) (1, 1) (1, 1) 21 21"},
};

static uint32_t drawn;

/* Whole numbers from -2 to 2. */
static void draw_into(cohort_ndarray *array) {
  static double values[1 << 16];
  int64_t shape[COHORT_MAX_AXES], size = 0, i;
  int32_t num_axes = 0, dtype = 0;
  cohort_ndarray *wide = NULL, *as_it_is = NULL;

  ok(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &num_axes));
  ok(cohort_ndarray_size(array, &size));
  ok(cohort_ndarray_dtype(array, &dtype));
  assert_true((size_t)size <= COUNT(values));
  for (i = 0; i < size; ++i) {
    drawn = drawn * 1664525u + 1013904223u;
    values[i] = (double)(drawn >> 16) / (1 << 16) * 5;
    values[i] = (double)(int)values[i] - 2;
  }
  ok(cohort_ndarray_from_host(values, (size_t)size * sizeof(double), shape, num_axes, COHORT_DTYPE_FLOAT64, NULL,
                              &wide));
  ok(cohort_ndarray_cast(wide, dtype, &as_it_is));
  ok(cohort_ndarray_copy_to(as_it_is, array));
  cohort_ndarray_free(wide);
  cohort_ndarray_free(as_it_is);
}

static int has_bias(const layer *l) { return strstr(l->sizes, "bias") != NULL; }

static cohort_executor *bound(const layer *l, int32_t dtype) {
  char kernel[24], stride[24], pad[24], dilate[24], filters[8], groups[8];
  const char *attrs[] = {
      "kernel", kernel,       "stride", stride,      "pad",  pad,       "dilate",
      dilate,   "num_filter", filters,  "num_group", groups, "no_bias", has_bias(l) ? "False" : "True",
      "layout", "NHWC",       NULL};
  cohort_descs *known = no_descs();
  cohort_symbol *symbol;

  assert_int_equal(sscanf(l->sizes, "(%16[^)]) (%16[^)]) (%16[^)]) (%16[^)]) %7s %7s", kernel + 1, stride + 1, pad + 1,
                          dilate + 1, filters, groups),
                   6);
  kernel[0] = stride[0] = pad[0] = dilate[0] = '(';
  strcat(kernel, ")"), strcat(stride, ")"), strcat(pad, ")"), strcat(dilate, ")");
  if (!strstr(l->sizes, "NHWC")) attrs[14] = NULL;
  symbol = node(l->op, "layer", attrs, INPUTS(variable("data")));
  add_typed(known, "data", l->data, l->num_axes, dtype);
  return simple_bind_with(symbol, known, "write");
}

static cohort_executor *trained(const layer *l, int32_t dtype) {
  cohort_executor *executor = bound(l, dtype);
  cohort_ndarray *head = NULL, *output;
  size_t num_args = 0, i;

  drawn = 7;
  ok(cohort_executor_num_arrays(executor, COHORT_EXECUTOR_ARGS, &num_args));
  for (i = 0; i < num_args; ++i) {
    cohort_ndarray *array = NULL;

    ok(cohort_executor_array(executor, COHORT_EXECUTOR_ARGS, i, &array));
    draw_into(array);
    cohort_ndarray_free(array);
  }
  ok(cohort_executor_forward(executor, 1));
  output = output_of(executor, 0);
  ok(cohort_ndarray_cast(output, dtype, &head)); /* its shape and type */
  cohort_ndarray_free(output);
  draw_into(head);
  ok(cohort_executor_backward(executor, &head, 1, 1));
  cohort_ndarray_free(head);
  return executor;
}

/* The array in float64, having been rounded to `dtype`; it is freed. */
static double *numbers(cohort_ndarray *array, int32_t dtype, int64_t *out_size) {
  cohort_ndarray *rounded = NULL, *wide = NULL;
  double *values;

  ok(cohort_ndarray_size(array, out_size));
  values = test_malloc((size_t)*out_size * sizeof(double));
  ok(cohort_ndarray_cast(array, dtype, &rounded));
  ok(cohort_ndarray_cast(rounded, COHORT_DTYPE_FLOAT64, &wide));
  ok(cohort_ndarray_read(wide, values, (size_t)*out_size * sizeof(double)));
  cohort_ndarray_free(array);
  cohort_ndarray_free(rounded);
  cohort_ndarray_free(wide);
  return values;
}

static void are_equal(const layer *l, const char *name, cohort_ndarray *array, cohort_ndarray *expected,
                      int32_t dtype) {
  int64_t size = 0, i;
  double *const found = numbers(array, dtype, &size), *const right = numbers(expected, dtype, &size);

  for (i = 0; i < size; ++i) {
    if (found[i] != right[i]) {
      fail_msg("%s, %s, %s of %s: expected %.9g at %d, found %.9g", l->op, l->what, name,
               dtype == COHORT_DTYPE_FLOAT32 ? "float32" : "bfloat16", right[i], (int)i, found[i]);
    }
  }
  test_free(found);
  test_free(right);
}

static void all_types_have_the_same_numbers(void **state) {
  const int32_t dtypes[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_BFLOAT16};
  size_t i, d, a;

  (void)state;
  for (i = 0; i < COUNT(layers); ++i) {
    const layer *l = &layers[i];
    const char *const names[] = {"data", "layer_weight", "layer_bias"};
    cohort_executor *wide = trained(l, COHORT_DTYPE_FLOAT64);

    for (d = 0; d < COUNT(dtypes); ++d) {
      cohort_executor *executor = trained(l, dtypes[d]);

      are_equal(l, "the result", output_of(executor, 0), output_of(wide, 0), dtypes[d]);
      for (a = 0; a < (size_t)(has_bias(l) ? 3 : 2); ++a) {
        are_equal(l, names[a], grad_of(executor, names[a]), grad_of(wide, names[a]), dtypes[d]);
      }
      cohort_executor_free(executor);
    }
    cohort_executor_free(wide);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(all_types_have_the_same_numbers)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
