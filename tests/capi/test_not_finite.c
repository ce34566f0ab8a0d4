/* SPDX-License-Identifier: Apache-2.0 */
/* NaN and infinities: where they go, and where a run that has them stops. */
#include <math.h>
#include <stdio.h>

#include "support/group_tests.h"

enum { kLength = 7, kChannels = 16 };

/* Maxima of windows; after a 1 x 1 convolution to kChannels channels, all ones, data lie in blocks. */
static cohort_group *bind_pooling(const char *kernel, const char *stride, const char *pad, int is_blocked) {
  cohort_symbol *symbol = variable("data");

  if (is_blocked) {
    symbol =
        node("Convolution", "conv", ATTRS("kernel", "(1, 1)", "num_filter", "16", "no_bias", "True"), INPUTS(symbol));
  }
  symbol = node("Pooling", "pool", ATTRS("kernel", kernel, "stride", stride, "pad", pad, "pool_type", "max"),
                INPUTS(symbol));
  return bind_for_training(symbol, 1, desc("data", SHAPE(1, 1, kLength, kLength), NULL), NULL,
                           is_blocked ? NAMES("conv_weight") : NO_NAMES, NULL);
}

/* A window with a NaN gives NaN, wherever it lies in the window, all others their maximum. */
static void check_windows(int kernel, int stride, int pad, int is_blocked, int is_train) {
  const int num = (kLength + 2 * pad - kernel) / stride + 1, channels = is_blocked ? kChannels : 1;
  char words[3][16];
  cohort_group *group;
  int place;

  snprintf(words[0], sizeof(words[0]), "(%d, %d)", kernel, kernel);
  snprintf(words[1], sizeof(words[1]), "(%d, %d)", stride, stride);
  snprintf(words[2], sizeof(words[2]), "(%d, %d)", pad, pad);
  group = bind_pooling(words[0], words[1], words[2], is_blocked);
  if (is_blocked) fill(device_array(group, COHORT_GROUP_PARAMS, 0, 0), 1);
  for (place = 0; place < kLength * kLength; ++place) {
    static float found[kChannels * kLength * kLength];
    float data[kLength * kLength];
    cohort_ndarray *output;
    size_t bytes = 0;
    int c, i, k;

    for (i = 0; i < kLength * kLength; ++i) data[i] = (float)i;
    data[place] = NAN;
    forward(group, floats(SHAPE(1, 1, kLength, kLength), data, COUNT(data)), NULL, is_train);
    output = merged(group, COHORT_GROUP_OUTPUTS, 0);
    ok(cohort_ndarray_bytes(output, &bytes));
    assert_int_equal(bytes, (size_t)(channels * num * num) * sizeof(float));
    ok(cohort_ndarray_read(output, found, bytes));
    cohort_ndarray_free(output);
    for (c = 0; c < channels; ++c) {
      for (i = 0; i < num; ++i) {
        for (k = 0; k < num; ++k) {
          const int top = i * stride - pad, left = k * stride - pad, y = place / kLength, x = place % kLength;
          const int bottom = top + kernel < kLength ? top + kernel : kLength;
          const int right = left + kernel < kLength ? left + kernel : kLength;
          const int has_nan = y >= top && y < bottom && x >= left && x < right;
          const float value = found[(c * num + i) * num + k];

          if (has_nan ? !isnan(value) : value != data[(bottom - 1) * kLength + right - 1])
            fail_msg("NaN at %d, window %d of %d, is_train %d: found %g", place, i * num + k, kernel, is_train, value);
        }
      }
    }
  }
  cohort_group_free(group);
}

static void the_maximum_of_a_window_with_a_nan_is_nan(void **state) {
  int is_blocked, is_train;

  (void)state;
  for (is_blocked = 0; is_blocked <= 1; ++is_blocked) {
    for (is_train = 0; is_train <= 1; ++is_train) {
      check_windows(2, 2, 0, is_blocked, is_train);
      check_windows(3, 1, 0, is_blocked, is_train);
      check_windows(3, 2, 1, is_blocked, is_train);
      check_windows(kLength, 1, 0, is_blocked, is_train);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_maximum_of_a_window_with_a_nan_is_nan),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
