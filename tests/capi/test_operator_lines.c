/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that process whole lines, tiles and blocks of elements, at sizes that are no multiple of these: the result is
 * that of element-by-element code, and gradients of linear operators are their transposes. */
#include <math.h>

#include "support/executor_tests.h"

enum { MOST = 40000, WIDE = 1203 };

static uint32_t drawn;

static float draw(void) { /* from 0.25 to 1.25 */
  drawn = drawn * 1664525u + 1013904223u;
  return 0.25f + (float)(drawn >> 8) / (1 << 24);
}

typedef struct lines_case {
  const char *op, *attrs[16];
  int64_t shape[4];
  int32_t num_axes;
} lines_case;

static float in[MOST], out[MOST], heads[MOST], grads[MOST];

static size_t read_all(cohort_ndarray *array, float *to) { /* frees the array */
  int64_t size = 0;

  ok(cohort_ndarray_size(array, &size));
  assert_in_range(size, 1, MOST);
  ok(cohort_ndarray_read(array, to, (size_t)size * sizeof(float)));
  cohort_ndarray_free(array);
  return (size_t)size;
}

/* Runs the operator on random numbers: in, out, heads and grads are filled; returns the number of output elements. */
static size_t run(const lines_case *c) {
  cohort_descs *known = no_descs();
  cohort_executor *executor;
  cohort_ndarray *array, *head = NULL;
  int64_t shape[COHORT_MAX_AXES], size = 1;
  int32_t axes = 0;
  size_t count;

  for (axes = 0; axes < c->num_axes; ++axes) size *= c->shape[axes];
  assert_in_range(size, 1, MOST);
  add_typed(known, "x", c->shape, c->num_axes, COHORT_DTYPE_FLOAT32);
  executor = simple_bind_with(node(c->op, "op", c->attrs, INPUTS(variable("x"))), known, "write");
  drawn = 7;
  for (count = 0; count < (size_t)size; ++count) in[count] = draw();
  set_array(executor, COHORT_EXECUTOR_ARGS, "x", in, (size_t)size);
  ok(cohort_executor_forward(executor, 1));
  array = output_of(executor, 0);
  ok(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &axes));
  count = read_all(array, out);
  for (size = 0; size < (int64_t)count; ++size) heads[size] = draw();
  ok(cohort_ndarray_from_host(heads, count * sizeof(float), shape, axes, COHORT_DTYPE_FLOAT32, NULL, &head));
  ok(cohort_executor_backward(executor, &head, 1, 1));
  read_all(grad_of(executor, "x"), grads);
  cohort_ndarray_free(head);
  cohort_executor_free(executor);
  return count;
}

static void gradients_are_the_transposes_of_linear_operators(void **state) {
  static const lines_case cases[] = {
      {"Pooling", {"kernel", "(2,2)", "stride", "(2,2)", "pool_type", "sum", NULL}, {1, 3, 29, 61}, 4},
      {"Pooling", {"kernel", "(3,5)", "stride", "(2,1)", "pad", "(1,2)", "pool_type", "sum", NULL}, {1, 2, 7, WIDE}, 4},
      {"Pooling", {"kernel", "(4,)", "stride", "(3,)", "pad", "(2,)", "pool_type", "sum", NULL}, {1, 2, WIDE}, 3},
      {"_contrib_BilinearResize2D", {"height", "13", "width", "67", NULL}, {2, 3, 7, 31}, 4},
      {"_contrib_BilinearResize2D", {"height", "5", "width", "9", NULL}, {2, 3, 17, 31}, 4},
      {"im2col", {"kernel", "(3,3)", "stride", "(1,1)", "pad", "(1,1)", NULL}, {2, 3, 9, 31}, 4},
      {"im2col", {"kernel", "(1,3)", "stride", "(1,2)", "pad", "(0,2)", "dilate", "(1,2)", NULL}, {1, 1, 3, WIDE}, 4},
      {"UpSampling", {"scale", "2", "sample_type", "nearest", "num_args", "1", NULL}, {2, 3, 9, 31}, 4},
      {"UpSampling", {"scale", "3", "sample_type", "nearest", "num_args", "1", NULL}, {2, 3, 9, 31}, 4},
      {"transpose", {"axes", "(1,0)", NULL}, {131, 70}, 2},
      {"transpose", {"axes", "(0,2,1)", NULL}, {3, 66, 129}, 3},
      {"slice", {"begin", "(None,None)", "end", "(None,None)", "step", "(1,-1)", NULL}, {33, 70}, 2},
      {"slice", {"begin", "(None,None)", "end", "(None,None)", "step", "(2,2)", NULL}, {33, 71}, 2},
  };
  size_t i, k, count, size;

  (void)state;
  for (i = 0; i < COUNT(cases); ++i) {
    double by_result = 0, by_data = 0;
    int axis;

    for (axis = 0, size = 1; axis < cases[i].num_axes; ++axis) size *= (size_t)cases[i].shape[axis];
    count = run(&cases[i]);
    for (k = 0; k < count; ++k) by_result += (double)heads[k] * out[k];
    for (k = 0; k < size; ++k) by_data += (double)grads[k] * in[k];
    if (!(fabs(by_result - by_data) <= 1e-5 * fabs(by_result))) {
      fail_msg("%s, case %d: expected %.9g along the gradient, found %.9g", cases[i].op, (int)i, by_result, by_data);
    }
  }
}

static void is_close(const char *what, size_t at, double expected, double found) {
  if (!(fabs(expected - found) <= 5e-6 * fmax(1, fabs(expected)))) {
    fail_msg("%s[%d]: expected %.9g, found %.9g", what, (int)at, expected, found);
  }
}

static void matrices_are_turned_whole(void **state) {
  static const lines_case turned = {"transpose", {"axes", "(1,0)", NULL}, {131, 70}, 2};
  static const lines_case reversed = {
      "slice", {"begin", "(None,None)", "end", "(None,None)", "step", "(1,-1)", NULL}, {33, 70}, 2};
  size_t i;

  (void)state;
  run(&turned);
  for (i = 0; i < 131 * 70; ++i) is_close("turned", i, in[i % 131 * 70 + i / 131], out[i]);
  run(&reversed);
  for (i = 0; i < 33 * 70; ++i) is_close("reversed", i, in[i / 70 * 70 + 69 - i % 70], out[i]);
}

/* Windows of 3 by 3 with a step of 2 along lines, padded by 1. */
static void norms_of_windows_are_those_of_their_elements(void **state) {
  static const lines_case norms = {
      "Pooling",
      {"kernel", "(3,3)", "stride", "(1,2)", "pad", "(1,1)", "pool_type", "lp", "p_value", "2", NULL},
      {1, 1, 5, WIDE},
      4};
  enum { PLACES = (WIDE + 2 - 3) / 2 + 1 };
  static double expected[5 * WIDE];
  int y, x, v, u;

  (void)state;
  memset(expected, 0, sizeof expected);
  assert_int_equal(run(&norms), 5 * PLACES);
  for (y = 0; y < 5; ++y) {
    for (x = 0; x < PLACES; ++x) {
      const int at = y * PLACES + x;
      double sum = 0;

      for (v = y - 1; v <= y + 1; ++v) {
        for (u = 2 * x - 1; u <= 2 * x + 1; ++u) {
          if (v >= 0 && v < 5 && u >= 0 && u < WIDE) sum += (double)in[v * WIDE + u] * in[v * WIDE + u];
        }
      }
      is_close("norm", (size_t)at, sqrt(sum), out[at]);
      for (v = y - 1; v <= y + 1; ++v) {
        for (u = 2 * x - 1; u <= 2 * x + 1; ++u) {
          if (v >= 0 && v < 5 && u >= 0 && u < WIDE) expected[v * WIDE + u] += heads[at] * in[v * WIDE + u] / sqrt(sum);
        }
      }
    }
  }
  for (x = 0; x < 5 * WIDE; ++x) is_close("gradient", (size_t)x, expected[x], grads[x]);
}

/* Channels 1 to 7 of more places than a block; beta 0.75 has a special formula. */
static void responses_are_normalised_in_all_blocks(void **state) {
  static const char *const betas[] = {"0.75", "0.6"};
  enum { CHANNELS = 7 };
  lines_case c = {"LRN", {"nsize", "5", "alpha", "0.5", "beta", NULL, NULL}, {1, CHANNELS, 3, WIDE / 3}, 4};
  const int places = 3 * (WIDE / 3);
  int b, k, i, n;

  (void)state;
  for (b = 0; b < 2; ++b) {
    const double beta = b ? 0.6 : 0.75, alpha = 0.5 / 5;

    c.attrs[5] = betas[b];
    run(&c);
    for (i = 0; i < places; ++i) {
      double norm[CHANNELS], ratio[CHANNELS];

      for (k = 0; k < CHANNELS; ++k) {
        const int at = k * places + i;

        norm[k] = 2;
        for (n = k < 2 ? 0 : k - 2; n <= k + 2 && n < CHANNELS; ++n) {
          norm[k] += alpha * in[n * places + i] * in[n * places + i];
        }
        is_close("response", (size_t)at, in[at] * pow(norm[k], -beta), out[at]);
        ratio[k] = heads[at] * in[at] * pow(norm[k], -beta - 1);
      }
      for (k = 0; k < CHANNELS; ++k) {
        const int at = k * places + i;
        double sum = 0;

        for (n = k < 2 ? 0 : k - 2; n <= k + 2 && n < CHANNELS; ++n) sum += ratio[n];
        is_close("gradient", (size_t)at, heads[at] * pow(norm[k], -beta) - 2 * alpha * beta * in[at] * sum, grads[at]);
      }
    }
  }
}

/* Rows shorter than a register, and longer than a block. */
static void logarithms_of_softmax_are_those_of_all_rows(void **state) {
  const int64_t widths[] = {1, 3, 10, 64, 700};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(widths); ++i) {
    const int64_t cols = widths[i];
    const lines_case c = {"log_softmax", {"temperature", "0.5", NULL}, {13, cols}, 2};
    int64_t row, k;

    run(&c);
    for (row = 0; row < 13; ++row) {
      double sum = 0, head = 0;

      for (k = 0; k < cols; ++k) sum += exp(2 * (double)in[row * cols + k]), head += heads[row * cols + k];
      for (k = 0; k < cols; ++k) {
        const int64_t at = row * cols + k;
        const double share = exp(2 * (double)in[at]) / sum;

        is_close("logarithm", (size_t)at, log(share), out[at]);
        is_close("gradient", (size_t)at, 2 * (heads[at] - share * head), grads[at]);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(gradients_are_the_transposes_of_linear_operators), TEST(matrices_are_turned_whole),
      TEST(norms_of_windows_are_those_of_their_elements),     TEST(responses_are_normalised_in_all_blocks),
      TEST(logarithms_of_softmax_are_those_of_all_rows),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
