/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that read a value "w" of 256 x 256 floats and an input of their own: for tests in which w is read many
 * times. */
#ifndef COHORT_TESTS_READERS_H
#define COHORT_TESTS_READERS_H

#include "support/executor_tests.h"

enum { SIDE = 256, ELEMENTS = SIDE * SIDE, MANY = 64 };

/* The value takes kValue bytes; all other values of one reader take less than kReader. */
static const size_t kValue = ELEMENTS * sizeof(float), kReader = 8192;

typedef struct {
  const char *op;
  const char *attrs[7]; /* keys and values alternately, then NULL */
  int weight_first;     /* w is the first input */
  int64_t weight[4], data[4];
  int32_t weight_axes, data_axes; /* data_axes 0: there is no other input */
} reader;

static const reader readers[] = {
    {"FullyConnected", {"num_hidden", "256", "no_bias", "True"}, 0, {SIDE, SIDE}, {2, SIDE}, 2, 2},
    {"dot", {NULL}, 0, {SIDE, SIDE}, {2, SIDE}, 2, 2},
    {"batch_dot", {NULL}, 0, {4, 128, 128}, {4, 1, 128}, 3, 3},
    {"Convolution",
     {"num_filter", "64", "kernel", "(4, 4)", "no_bias", "True"},
     0,
     {64, 64, 4, 4},
     {1, 64, 4, 4},
     4,
     4},
    {"Embedding", {"input_dim", "256", "output_dim", "256"}, 0, {SIDE, SIDE}, {3}, 2, 1},
    {"broadcast_mul", {NULL}, 1, {SIDE, SIDE}, {SIDE, 1}, 2, 2},
    {"slice_axis", {"axis", "0", "begin", "0", "end", "8"}, 1, {SIDE, SIDE}, {0}, 2, 0},
};

/* The data of the k-th of several readers, small whole numbers, other ones for each; rows for Embedding. Returns how
 * many there are, at most ELEMENTS. */
static inline size_t fill_values(const reader *of, int k, float *values) {
  size_t count = 1, i;
  int32_t axis;

  for (axis = 0; axis < of->data_axes; ++axis) count *= (size_t)of->data[axis];
  for (i = 0; i < count; ++i) values[i] = (float)((i * 7 + (size_t)k * 3) % 11) - (of->data_axes > 1 ? 5.0f : 0.0f);
  return count;
}

/* Checks a gradient, up to rounding of a sum in float32. */
static inline void check_gradient(const char *what, int uses, const float *found, const float *expected) {
  size_t e;

  for (e = 0; e < ELEMENTS; ++e) {
    const float difference = found[e] - expected[e], scale = expected[e] < 0 ? -expected[e] : expected[e];

    if (difference <= 1e-5f * (1 + scale) && -difference <= 1e-5f * (1 + scale)) continue;
    fail_msg("%s read %d times: element %zu: expected %g, found %g", what, uses, e, (double)expected[e],
             (double)found[e]);
  }
}

#endif
