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

/* ---- where a run stops ----------------------------------------------------------------------------------------- */

/* exp of two dense layers of two rows; wide data leave the range of float32 in exp. */
static cohort_group *bind_layers(size_t num_contexts, const cohort_group_options *options) {
  cohort_symbol *symbol =
      node("FullyConnected", "below", ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(variable("data")));
  cohort_group *group;

  symbol = node("exp", "power", NO_ATTRS, INPUTS(symbol));
  symbol = node("FullyConnected", "above", ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(symbol));
  group = bind_for_training(symbol, num_contexts, desc("data", SHAPE(2, 2), NULL), NULL,
                            NAMES("below_weight", "above_weight"), options);
  set_param(group, "below_weight", floats(SHAPE(2, 2), FLOATS(1, 0, 0, 1)));
  set_param(group, "above_weight", floats(SHAPE(2, 2), FLOATS(1, 1, 1, 1)));
  return group;
}

static cohort_ndarray *rows(float last) { return floats(SHAPE(2, 2), FLOATS(1, 2, 3, last)); }

/* The first layer that is not finite is named, with its device; the group then goes on. */
static void a_group_stops_where_numbers_leave_their_range(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;

  (void)state;
  options.stop_if_not_finite = 1;
  group = bind_layers(1, &options);
  fails(try_forward(group, rows(100), NULL, 1), COHORT_ERROR_EXECUTION,
        "'power_output': expected finite numbers, found 1 of 4 infinite or NaN, the first inf at (1, 1)");
  fails(try_forward(group, rows(NAN), NULL, 0), COHORT_ERROR_EXECUTION, "'below_output'");
  forward(group, rows(1), NULL, 1);
  fails(try_backward(group, floats(SHAPE(2, 2), FLOATS(INFINITY, 0, 0, 0))), COHORT_ERROR_EXECUTION,
        "'above_backward_output");
  forward(group, rows(1), NULL, 1);
  backward(group, floats(SHAPE(2, 2), FLOATS(1, 0, 0, 1)));
  ok(cohort_group_wait(group));
  cohort_group_free(group);

  group = bind_layers(2, &options);
  fails(try_forward(group, rows(100), NULL, 1), COHORT_ERROR_EXECUTION, "device 1: 'power_output'");
  cohort_group_free(group);
}

/* A monitor does the same between tic and toc, whatever its pattern. */
static void a_monitor_stops_where_numbers_leave_their_range(void **state) {
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor = NULL;
  cohort_group *group = bind_layers(1, NULL);
  size_t num = 0;

  (void)state;
  options.stop_if_not_finite = 1;
  options.pattern = "above";
  ok(cohort_monitor_create(1, &options, &monitor));
  ok(cohort_monitor_install_on_group(monitor, group));
  forward(group, rows(100), NULL, 0);
  ok(cohort_monitor_tic(monitor));
  fails(try_forward(group, rows(100), NULL, 0), COHORT_ERROR_EXECUTION, "'power_output': expected finite numbers");
  forward(group, rows(1), NULL, 0);
  ok(cohort_monitor_toc(monitor, &num));
  assert_int_equal(num, 2); /* above_output, above_weight */
  cohort_monitor_free(monitor);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_maximum_of_a_window_with_a_nan_is_nan),
      TEST(a_group_stops_where_numbers_leave_their_range),
      TEST(a_monitor_stops_where_numbers_leave_their_range),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
