/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and deconvolutions of small whole numbers, with their gradients. Sums of these are exact in float32 and
 * float64 and are rounded once in 16-bit types, so that every kernel must give the same numbers. */
#ifndef COHORT_TESTS_WHOLE_NUMBER_LAYERS_H
#define COHORT_TESTS_WHOLE_NUMBER_LAYERS_H

#include <stdio.h>

#include "support/executor_tests.h"

typedef struct layer {
  const char *op, *what;
  int64_t data[5];
  int num_axes;
  const char *sizes; /* kernel stride pad dilate num_filter num_group, then optionally "bias", "first" and a layout */
} layer;

/* Whole numbers from -2 to 2 from the generator state *drawn. */
static inline void draw_into(cohort_ndarray *array, uint32_t *drawn) {
  static double values[1 << 19];
  int64_t shape[COHORT_MAX_AXES], size = 0, i;
  int32_t num_axes = 0, dtype = 0;
  cohort_ndarray *wide = NULL, *as_it_is = NULL;

  ok(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &num_axes));
  ok(cohort_ndarray_size(array, &size));
  ok(cohort_ndarray_dtype(array, &dtype));
  assert_true((size_t)size <= COUNT(values));
  for (i = 0; i < size; ++i) {
    *drawn = *drawn * 1664525u + 1013904223u;
    values[i] = (double)(*drawn >> 16) / (1 << 16) * 5;
    values[i] = (double)(int)values[i] - 2;
  }
  ok(cohort_ndarray_from_host(values, (size_t)size * sizeof(double), shape, num_axes, COHORT_DTYPE_FLOAT64, NULL,
                              &wide));
  ok(cohort_ndarray_cast(wide, dtype, &as_it_is));
  ok(cohort_ndarray_copy_to(as_it_is, array));
  cohort_ndarray_free(wide);
  cohort_ndarray_free(as_it_is);
}

static inline int has_bias(const layer *l) { return strstr(l->sizes, "bias") != NULL; }

/* The gradient of the data is not wanted. */
static inline int is_first(const layer *l) { return strstr(l->sizes, "first") != NULL; }

static inline cohort_executor *bound(const layer *l, int32_t dtype) {
  char kernel[24], stride[24], pad[24], dilate[24], filters[8], groups[8];
  const char *attrs[] = {
      "kernel", kernel,       "stride", stride,      "pad",  pad,       "dilate",
      dilate,   "num_filter", filters,  "num_group", groups, "no_bias", has_bias(l) ? "False" : "True",
      "layout", NULL,         NULL};
  static const char *const layouts[] = {"NHWC", "NDHWC"}, *const trained_names[] = {"layer_weight", "layer_bias"},
                           *const reqs[] = {"write", "write"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_descs *known = no_descs();
  cohort_symbol *symbol;
  size_t i;

  assert_int_equal(sscanf(l->sizes, "(%16[^)]) (%16[^)]) (%16[^)]) (%16[^)]) %7s %7s", kernel + 1, stride + 1, pad + 1,
                          dilate + 1, filters, groups),
                   6);
  kernel[0] = stride[0] = pad[0] = dilate[0] = '(';
  strcat(kernel, ")"), strcat(stride, ")"), strcat(pad, ")"), strcat(dilate, ")");
  for (i = 0; i < COUNT(layouts); ++i) {
    if (strstr(l->sizes, layouts[i])) attrs[15] = layouts[i];
  }
  if (!attrs[15]) attrs[14] = NULL;
  symbol = node(l->op, "layer", attrs, INPUTS(variable("data")));
  add_typed(known, "data", l->data, l->num_axes, dtype);
  if (!is_first(l)) return simple_bind_with(symbol, known, "write");
  options.grad_req_list = reqs;
  options.grad_req_names = trained_names;
  options.num_grad_reqs = COUNT(reqs);
  return simple_bind(symbol, known, &options);
}

/* Runs forward and backward on numbers that are the same for each type; *out_head: the head gradient, unless NULL. */
static inline cohort_executor *trained(const layer *l, int32_t dtype, cohort_ndarray **out_head) {
  cohort_executor *executor = bound(l, dtype);
  cohort_ndarray *head = NULL, *output;
  size_t num_args = 0, i;
  uint32_t drawn = 7;

  ok(cohort_executor_num_arrays(executor, COHORT_EXECUTOR_ARGS, &num_args));
  for (i = 0; i < num_args; ++i) {
    cohort_ndarray *array = NULL;

    ok(cohort_executor_array(executor, COHORT_EXECUTOR_ARGS, i, &array));
    draw_into(array, &drawn);
    cohort_ndarray_free(array);
  }
  ok(cohort_executor_forward(executor, 1));
  output = output_of(executor, 0);
  ok(cohort_ndarray_cast(output, dtype, &head)); /* its shape and type */
  cohort_ndarray_free(output);
  draw_into(head, &drawn);
  ok(cohort_executor_backward(executor, &head, 1, 1));
  if (out_head) {
    *out_head = head;
  } else {
    cohort_ndarray_free(head);
  }
  return executor;
}

/* Rounds the array to `dtype`, then returns it in float64; frees the original. */
static inline double *numbers(cohort_ndarray *array, int32_t dtype, int64_t *out_size) {
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

#endif
