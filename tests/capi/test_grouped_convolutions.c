/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and deconvolutions in groups, and their gradients. */
#include "support/whole_number_layers.h"

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
    cohort_executor *wide = trained(l, COHORT_DTYPE_FLOAT64, NULL);

    for (d = 0; d < COUNT(dtypes); ++d) {
      cohort_executor *executor = trained(l, dtypes[d], NULL);

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
