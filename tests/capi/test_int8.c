/* SPDX-License-Identifier: Apache-2.0 */
/* Inference in int8: ranges from sample batches, int8 layers, and what is refused. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/executor_tests.h"
#include "support/numbers.h"

enum { kImages = 4, kChannels = 8, kSide = 10 };

/* Random numbers in (offset - 1, offset + 1); frees the handle. */
static void draw_free(cohort_ndarray *array, uint32_t seed, float offset) {
  size_t count, i;
  float *values;
  cohort_ndarray *same = NULL;

  ok(cohort_ndarray_copy(array, NULL, &same));
  values = read_free(same, &count);
  for (i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / 8388608.0f - 1.0f + offset;
  }
  ok(cohort_ndarray_write(array, values, count * sizeof(*values)));
  cohort_ndarray_free(array);
  free(values);
}

static cohort_symbol *convolution(const char *name, cohort_symbol *data, const char *filters) {
  return node("Convolution", name, ATTRS("kernel", "(3, 3)", "num_filter", filters, "pad", "(1, 1)"), INPUTS(data));
}

/* A second handle on the same symbol. */
static cohort_symbol *again(const cohort_symbol *symbol) {
  cohort_symbol *same = NULL;

  ok(cohort_symbol_output(symbol, 0, &same));
  return same;
}

/* Two residual blocks, the first of which adds signed values and the second unsigned ones, and a head. */
static cohort_symbol *network(void) {
  cohort_symbol *first = convolution("first", variable("data"), "16"), *kept = again(first);
  cohort_symbol *norm =
      node("BatchNorm", "bn", ATTRS("fix_gamma", "False"), INPUTS(convolution("second", first, "16")));
  cohort_symbol *block =
      node("relu", "relu1", NO_ATTRS, INPUTS(node("elemwise_add", "add1", NO_ATTRS, INPUTS(norm, kept))));
  cohort_symbol *skip_it = again(block);
  cohort_symbol *third =
      convolution("third", node("relu", "relu2", NO_ATTRS, INPUTS(convolution("mid", block, "32"))), "16");
  cohort_symbol *sum =
      node("relu", "relu3", NO_ATTRS, INPUTS(node("elemwise_add", "add2", NO_ATTRS, INPUTS(third, skip_it))));
  cohort_symbol *max =
      node("Pooling", "max", ATTRS("kernel", "(2, 2)", "stride", "(2, 2)", "pool_type", "max"), INPUTS(sum));
  cohort_symbol *mean =
      node("Pooling", "mean", ATTRS("global_pool", "True", "pool_type", "avg", "kernel", "(1, 1)"), INPUTS(max));

  return node("FullyConnected", "fc", ATTRS("num_hidden", "10"),
              INPUTS(node("Flatten", "flat", NO_ATTRS, INPUTS(mean))));
}

static cohort_error *try_bind_as(cohort_executor **out_executor, cohort_symbol *symbol, cohort_dtype type,
                                 const cohort_calibration *calibration, const char *grad_req) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.compute_dtype = type;
  options.calibration = calibration;
  options.grad_req = grad_req;
  return try_simple_bind(out_executor, symbol, desc("data", SHAPE(kImages, kChannels, kSide, kSide), NULL), &options);
}

static cohort_executor *bound(cohort_dtype type, const cohort_calibration *calibration) {
  static const char *const kNames[] = {"first_weight", "first_bias", "second_weight", "second_bias",
                                       "mid_weight",   "mid_bias",   "third_weight",  "third_bias",
                                       "bn_gamma",     "bn_beta",    "fc_weight",     "fc_bias"};
  cohort_executor *executor = NULL;
  uint32_t i;

  ok(try_bind_as(&executor, network(), type, calibration, NULL));
  for (i = 0; i < COUNT(kNames); ++i) draw_free(arg_of(executor, kNames[i]), i + 1, 0);
  draw_free(aux_of(executor, "bn_moving_mean"), 77, 0);
  draw_free(aux_of(executor, "bn_moving_var"), 78, 20);
  draw_free(arg_of(executor, "data"), 99, 0.5f);
  return executor;
}

static cohort_calibration *calibrated(cohort_executor *executor, cohort_calibration_method method) {
  cohort_calibration *calibration = NULL;

  ok(cohort_calibration_create(method, &calibration));
  ok(cohort_calibration_observe(calibration, executor));
  return calibration;
}

static void note_message(cohort_log_level level, const char *message, void *user_data) {
  (void)level;
  if (strstr(message, "compute_dtype")) *(int *)user_data = 1;
}

static size_t count_of(const char *text, const char *words) {
  size_t count = 0;

  for (text = strstr(text, words); text; text = strstr(text + 1, words)) ++count;
  return count;
}

/* All layers but the first and last values are in int8; the answer is close to that of float32. */
static void a_network_runs_in_bytes(void **state) {
  int32_t method;

  (void)state;
  for (method = COHORT_CALIBRATION_MIN_MAX; method <= COHORT_CALIBRATION_ENTROPY; ++method) {
    cohort_executor *wide = bound(COHORT_DTYPE_FLOAT32, NULL), *narrow;
    cohort_calibration *calibration = calibrated(wide, method);
    double difference = 0, largest = 0;
    const char *text = NULL;
    float *a, *b;
    size_t count, i;
    int told = 0;

    ok(cohort_set_log(COHORT_LOG_INFO, note_message, &told));
    narrow = bound(COHORT_DTYPE_INT8, calibration);
    ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
    cohort_calibration_free(calibration);
    ok(cohort_executor_forward(wide, 0));
    ok(cohort_executor_forward(narrow, 0));
    a = read_free(output_of(wide, 0), &count);
    b = read_free(output_of(narrow, 0), &count);
    for (i = 0; i < count; ++i) {
      difference = fmax(difference, fabs((double)a[i] - b[i]));
      largest = fmax(largest, fabs((double)a[i]));
    }
    if (!told) {
      assert_true(difference > 0 && difference < 0.05 * largest);
      ok(cohort_executor_debug_text(narrow, &text));
      /* first, second (with its norm, sum and relu), mid, third, both poolings, fc. */
      assert_int_equal(count_of(text, "Computes in int8"), 7);
    } else {
      assert_true(difference <= 1e-5 * largest);
    }
    free(a);
    free(b);
    cohort_executor_free(wide);
    cohort_executor_free(narrow);
  }
}

/* Saved ranges bind the network to the same bits as the calibration that found them. */
static void ranges_that_were_kept_do_as_well(void **state) {
  int32_t method;

  (void)state;
  for (method = COHORT_CALIBRATION_MIN_MAX; method <= COHORT_CALIBRATION_ENTROPY; ++method) {
    cohort_executor *const wide = bound(COHORT_DTYPE_FLOAT32, NULL);
    cohort_calibration *calibrations[2] = {calibrated(wide, method), NULL};
    cohort_arrays *ranges = NULL;
    cohort_ndarray *range = NULL;
    float *answers[2], *ends;
    size_t num = 0, index, count, k;
    double low, high;
    char file[8192];

    ok(cohort_calibration_ranges(calibrations[0], &ranges));
    ok(cohort_arrays_save_memory(ranges, NULL, 0, &count));
    assert_true(count <= sizeof file);
    ok(cohort_arrays_save_memory(ranges, file, sizeof file, &count));
    cohort_arrays_free(ranges);
    ok(cohort_arrays_load_memory(file, count, NULL, &ranges));
    ok(cohort_calibration_create_from(ranges, &calibrations[1]));

    ok(cohort_calibration_range(calibrations[1], "first_output", &low, &high));
    ok(cohort_arrays_find(ranges, "first_output", &index));
    ok(cohort_arrays_get(ranges, index, &range));
    ends = read_free(range, &num);
    assert_int_equal(num, 2);
    assert_true(low == ends[0] && high == ends[1] && low < high);
    free(ends);
    cohort_arrays_free(ranges);

    fails(cohort_calibration_observe(calibrations[1], wide), COHORT_ERROR_STATE, "made from ranges");
    for (k = 0; k < 2; ++k) {
      cohort_executor *const narrow = bound(COHORT_DTYPE_INT8, calibrations[k]);

      ok(cohort_executor_forward(narrow, 0));
      answers[k] = read_free(output_of(narrow, 0), &count);
      cohort_executor_free(narrow);
      cohort_calibration_free(calibrations[k]);
    }
    assert_memory_equal(answers[0], answers[1], count * sizeof(float));
    for (k = 0; k < 2; ++k) free(answers[k]);
    cohort_executor_free(wide);
  }
}

/* One range, of a value "x"; frees the array. */
static cohort_error *from_range_free(cohort_ndarray *range, cohort_calibration **out_calibration) {
  cohort_arrays *ranges = NULL;
  cohort_error *error;

  ok(cohort_arrays_create(&ranges));
  ok(cohort_arrays_add(ranges, "x", range));
  cohort_ndarray_free(range);
  error = cohort_calibration_create_from(ranges, out_calibration);
  cohort_arrays_free(ranges);
  return error;
}

static void ranges_that_are_none_are_refused(void **state) {
  cohort_calibration *calibration = NULL;
  cohort_arrays *ranges = NULL;
  cohort_ndarray *range = floats(SHAPE(2), FLOATS(-1, 1));
  const int64_t shape = 2;
  double low, high;

  (void)state;
  ok(cohort_arrays_create(&ranges));
  fails(cohort_calibration_create_from(ranges, &calibration), COHORT_ERROR_INVALID_ARGUMENT, "found none");
  ok(cohort_arrays_add(ranges, NULL, range));
  fails(cohort_calibration_create_from(ranges, &calibration), COHORT_ERROR_INVALID_ARGUMENT, "expected the name");
  cohort_arrays_free(ranges);
  ranges = NULL;
  ok(cohort_arrays_create(&ranges));
  ok(cohort_arrays_add(ranges, "x", range));
  ok(cohort_arrays_add(ranges, "x", range));
  fails(cohort_calibration_create_from(ranges, &calibration), COHORT_ERROR_NAME, "'x': it is listed twice");
  fails(cohort_calibration_create_from(ranges, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_calibration");
  cohort_arrays_free(ranges);
  cohort_ndarray_free(range);

  fails(from_range_free(NULL, &calibration), COHORT_ERROR_INVALID_ARGUMENT, "found no array");
  fails(from_range_free(floats(SHAPE(3), FLOATS(1, 2, 3)), &calibration), COHORT_ERROR_SHAPE, "expected (2,), found");
  ok(cohort_ndarray_zeros(&shape, 1, COHORT_DTYPE_FLOAT64, NULL, &range));
  fails(from_range_free(range, &calibration), COHORT_ERROR_DTYPE, "expected float32, found float64");
  fails(from_range_free(floats(SHAPE(2), FLOATS(2, 1)), &calibration), COHORT_ERROR_INVALID_ARGUMENT, "2 and 1");
  fails(from_range_free(floats(SHAPE(2), FLOATS(0, INFINITY)), &calibration), COHORT_ERROR_INVALID_ARGUMENT, "inf");
  fails(from_range_free(floats(SHAPE(2), FLOATS(NAN, 1)), &calibration), COHORT_ERROR_INVALID_ARGUMENT, "nan");
  assert_null(calibration);
  ok(from_range_free(floats(SHAPE(2), FLOATS(1, 3)), &calibration));
  ok(cohort_calibration_range(calibration, "x", &low, &high));
  assert_true(low == 0 && high == 3);
  cohort_calibration_free(calibration);
  calibration = NULL;
  ok(cohort_calibration_create(COHORT_CALIBRATION_MIN_MAX, &calibration));
  ranges = NULL;
  fails(cohort_calibration_ranges(calibration, &ranges), COHORT_ERROR_STATE, "no batch was observed");
  cohort_calibration_free(calibration);
}

/* Checks that the largest difference of both answers is below a fraction of the largest number of the first; frees
 * them. */
static void answer_alike_free(cohort_executor *const *executors, double part) {
  double difference = 0, largest = 0;
  float *answers[2];
  size_t count, i, k;

  for (k = 0; k < 2; ++k) {
    ok(cohort_executor_forward(executors[k], 0));
    answers[k] = read_free(output_of(executors[k], 0), &count);
  }
  for (i = 0; i < count; ++i) {
    difference = fmax(difference, fabs((double)answers[0][i] - answers[1][i]));
    largest = fmax(largest, fabs((double)answers[0][i]));
  }
  assert_true(difference < part * largest);
  for (k = 0; k < 2; ++k) {
    free(answers[k]);
    cohort_executor_free(executors[k]);
  }
}

/* Checks that the answer is close to that of float32 if two layers of different sizes have the same name. */
static void layers_of_one_name_are_close(void **state) {
  cohort_executor *executor[2] = {NULL, NULL};
  cohort_calibration *calibration = NULL;
  size_t k;

  (void)state;
  for (k = 0; k < 2; ++k) {
    cohort_symbol *small = node("relu", "same", NO_ATTRS, INPUTS(convolution("first", variable("data"), "16")));
    cohort_symbol *large = node("relu", "same", NO_ATTRS, INPUTS(convolution("second", small, "16")));

    ok(try_bind_as(&executor[k], convolution("third", large, "4"), k ? COHORT_DTYPE_INT8 : COHORT_DTYPE_FLOAT32,
                   calibration, NULL));
    draw_free(arg_of(executor[k], "data"), 1, 0);
    draw_free(arg_of(executor[k], "first_weight"), 2, 0);
    draw_free(arg_of(executor[k], "second_weight"), 3, 0.5f);
    draw_free(arg_of(executor[k], "third_weight"), 4, 0);
    if (k == 0) calibration = calibrated(executor[0], COHORT_CALIBRATION_MIN_MAX);
  }
  answer_alike_free(executor, 0.05);
  cohort_calibration_free(calibration);
}

/* Groups of three channels: oneDNN has no such int8 layer. */
static void an_odd_layer_is_right(void **state) {
  cohort_executor *executor[2] = {NULL, NULL};
  cohort_calibration *calibration = NULL;
  size_t k;

  (void)state;
  for (k = 0; k < 2; ++k) {
    cohort_symbol *first =
        node("Convolution", "odd", ATTRS("kernel", "(3, 3)", "num_filter", "9", "num_group", "3", "dilate", "(2, 2)"),
             INPUTS(variable("data")));
    cohort_symbol *kept = again(first);
    cohort_symbol *second = node("Convolution", "next", ATTRS("kernel", "(1, 1)", "num_filter", "9", "num_group", "9"),
                                 INPUTS(node("relu", "r", NO_ATTRS, INPUTS(first))));
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

    options.compute_dtype = k ? COHORT_DTYPE_INT8 : COHORT_DTYPE_FLOAT32;
    options.calibration = calibration;
    executor[k] =
        simple_bind(node("relu", "last", NO_ATTRS, INPUTS(node("elemwise_add", "sum", NO_ATTRS, INPUTS(second, kept)))),
                    desc("data", SHAPE(2, 6, 7, 9), NULL), &options);
    draw_free(arg_of(executor[k], "data"), 1, 0.25f);
    draw_free(arg_of(executor[k], "odd_weight"), 2, 0);
    draw_free(arg_of(executor[k], "odd_bias"), 3, 0);
    draw_free(arg_of(executor[k], "next_weight"), 4, 0);
    draw_free(arg_of(executor[k], "next_bias"), 5, 0);
    if (k == 0) calibration = calibrated(executor[0], COHORT_CALIBRATION_MIN_MAX);
  }
  answer_alike_free(executor, 0.04);
  cohort_calibration_free(calibration);
}

/* Layers that end in a clip, as in MobileNetV2: one of them behind a sum, one without a oneDNN kernel. */
static void clips_are_parts_of_their_layers(void **state) {
  cohort_executor *executor[2] = {NULL, NULL};
  cohort_calibration *calibration = NULL;
  const char *text = NULL;
  size_t k, i;

  (void)state;
  for (k = 0; k < 2; ++k) {
    static const char *const kNames[] = {"data",        "wide_weight", "wide_bias",  "deep_weight", "deep_bias",
                                         "flat_weight", "flat_bias",   "odd_weight", "odd_bias"};
    cohort_symbol *wide =
        node("clip", "clip1", ATTRS("a_min", "0", "a_max", "6"), INPUTS(convolution("wide", variable("data"), "16")));
    cohort_symbol *kept = again(wide);
    cohort_symbol *deep =
        node("Convolution", "deep", ATTRS("kernel", "(3, 3)", "num_filter", "16", "num_group", "16", "pad", "(1, 1)"),
             INPUTS(wide));
    cohort_symbol *flat =
        convolution("flat", node("clip", "clip2", ATTRS("a_min", "0", "a_max", "6"), INPUTS(deep)), "16");
    cohort_symbol *sum = node("elemwise_add", "sum", NO_ATTRS, INPUTS(flat, kept));
    cohort_symbol *bent = node("clip", "clip3", ATTRS("a_min", "-9.5", "a_max", "21"), INPUTS(sum));
    cohort_symbol *odd =
        node("Convolution", "odd", ATTRS("kernel", "(3, 3)", "num_filter", "4", "num_group", "4", "dilate", "(2, 2)"),
             INPUTS(bent));

    ok(try_bind_as(&executor[k], node("clip", "last", ATTRS("a_min", "-20", "a_max", "10"), INPUTS(odd)),
                   k ? COHORT_DTYPE_INT8 : COHORT_DTYPE_FLOAT32, calibration, NULL));
    for (i = 0; i < COUNT(kNames); ++i) draw_free(arg_of(executor[k], kNames[i]), (uint32_t)i + 1, 0.125f);
    if (k == 0) calibration = calibrated(executor[0], COHORT_CALIBRATION_MIN_MAX);
  }
  ok(cohort_executor_debug_text(executor[1], &text));
  if (!strstr(text, "int8"))
    print_message("no units for products of bytes\n");
  else
    assert_int_equal(count_of(text, "Computes in int8"), 4);
  assert_null(strstr(text, "int8_quantize 'deep'"));
  answer_alike_free(executor, 0.05);
  cohort_calibration_free(calibration);
}

/* The int8 weights are made anew if the weights were written. */
static void weights_may_change(void **state) {
  cohort_executor *wide = bound(COHORT_DTYPE_FLOAT32, NULL), *narrow;
  cohort_calibration *calibration = calibrated(wide, COHORT_CALIBRATION_MIN_MAX);
  float *a, *b;
  size_t count, i;

  (void)state;
  narrow = bound(COHORT_DTYPE_INT8, calibration);
  cohort_calibration_free(calibration);
  ok(cohort_executor_forward(narrow, 0));
  a = read_free(output_of(narrow, 0), &count);
  for (i = 0; i < 2; ++i) {
    cohort_ndarray *const weight = arg_of(narrow, i ? "fc_bias" : "fc_weight");

    fill(weight, 0);
  }
  ok(cohort_executor_forward(narrow, 0));
  b = read_free(output_of(narrow, 0), &count);
  for (i = 0; i < count; ++i) assert_true(b[i] == 0);
  free(a);
  free(b);
  cohort_executor_free(wide);
  cohort_executor_free(narrow);
}

static void ranges_are_those_of_all_batches(void **state) {
  cohort_calibration *calibration = NULL;
  cohort_executor *executor =
      simple_bind(node("relu", "r", NO_ATTRS, INPUTS(variable("x"))), desc("x", SHAPE(3), NULL), NULL);
  double low = 9, high = 9;

  (void)state;
  ok(cohort_calibration_create(COHORT_CALIBRATION_MIN_MAX, &calibration));
  fails(cohort_calibration_range(calibration, "x", &low, &high), COHORT_ERROR_STATE, "no batch was observed");
  set_arg(executor, "x", 1, -2, 3);
  ok(cohort_calibration_observe(calibration, executor));
  set_arg(executor, "x", 5, -1, 2);
  ok(cohort_calibration_observe(calibration, executor));
  set_arg(executor, "x", 50, NAN, 2);
  fails(cohort_calibration_observe(calibration, executor), COHORT_ERROR_EXECUTION, "'x' holds");
  ok(cohort_calibration_range(calibration, "x", &low, &high));
  assert_true(low == -2 && high == 5);
  ok(cohort_calibration_range(calibration, "r_output", &low, &high));
  assert_true(low == 0 && high == 5);
  fails(cohort_calibration_range(calibration, "y", &low, &high), COHORT_ERROR_NAME, "'y'");
  cohort_calibration_free(calibration);
  cohort_executor_free(executor);
}

/* Two nodes of one name have one range, which covers both. */
static void nodes_of_one_name_have_one_range(void **state) {
  int32_t method;

  (void)state;
  for (method = COHORT_CALIBRATION_MIN_MAX; method <= COHORT_CALIBRATION_ENTROPY; ++method) {
    cohort_calibration *calibration;
    cohort_symbol *first = node("tanh", "same", NO_ATTRS, INPUTS(variable("x")));
    cohort_symbol *larger = node("_mul_scalar", "larger", ATTRS("scalar", "10"), INPUTS(first));
    cohort_executor *executor =
        simple_bind(node("negative", "same", NO_ATTRS, INPUTS(larger)), desc("x", SHAPE(3), NULL), NULL);
    double low = 9, high = 9;

    set_arg(executor, "x", 40, 40, -40);
    calibration = calibrated(executor, method);
    ok(cohort_calibration_range(calibration, "same_output", &low, &high));
    assert_true(low < -9 && high > 9);
    cohort_calibration_free(calibration);
    cohort_executor_free(executor);
  }
}

/* One outlier in a thousand numbers does not use up the int8 range of the others. */
static void entropy_cuts_off_what_is_far_out(void **state) {
  cohort_calibration *calibration = NULL;
  cohort_executor *executor =
      simple_bind(node("negative", "n", NO_ATTRS, INPUTS(variable("x"))), desc("x", SHAPE(4000), NULL), NULL);
  float values[4000];
  double low = 0, high = 0;
  uint32_t seed = 1, i, k;

  (void)state;
  for (i = 0; i < 4000; ++i) {
    values[i] = 0;
    for (k = 0; k < 12; ++k) {
      seed = seed * 1664525u + 1013904223u;
      values[i] += (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
  }
  values[17] = 100;
  set_array(executor, COHORT_EXECUTOR_ARGS, "x", values, 4000);
  calibration = calibrated(executor, COHORT_CALIBRATION_ENTROPY);
  ok(cohort_calibration_range(calibration, "x", &low, &high));
  assert_true(high < 50 && high > 1);
  cohort_calibration_free(calibration);
  cohort_executor_free(executor);
}

static void what_cannot_be_is_refused(void **state) {
  cohort_executor *executor = NULL, *wide;
  cohort_calibration *calibration = NULL;

  (void)state;
  fails(cohort_calibration_create(2, &calibration), COHORT_ERROR_INVALID_ARGUMENT, "method");
  fails(try_bind_as(&executor, network(), COHORT_DTYPE_INT8, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "expected a calibration");
  ok(cohort_calibration_create(COHORT_CALIBRATION_ENTROPY, &calibration));
  fails(try_bind_as(&executor, network(), COHORT_DTYPE_INT8, calibration, NULL), COHORT_ERROR_STATE,
        "no batch was observed");
  wide = bound(COHORT_DTYPE_FLOAT32, NULL);
  ok(cohort_calibration_observe(calibration, wide));
  fails(try_bind_as(&executor, network(), COHORT_DTYPE_INT8, calibration, "write"), COHORT_ERROR_UNSUPPORTED,
        "without gradients");
  assert_null(executor);
  cohort_calibration_free(calibration);
  cohort_calibration_free(NULL);
  cohort_executor_free(wide);
}

/* Binds a layer with the operators fused into it, then a chain of two nodes that is one kernel; neither node of the
 * chain can compute in int8. */
static cohort_error *try_bind_chain(cohort_executor **out_executor, const cohort_calibration *calibration,
                                    const char *name) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *layer = node("FullyConnected", "fc", ATTRS("num_hidden", "16"), INPUTS(variable("data")));
  cohort_symbol *flat = node("Flatten", "flat", NO_ATTRS, INPUTS(node("relu", "act", NO_ATTRS, INPUTS(layer))));
  cohort_symbol *chain = node("negative", "last", NO_ATTRS, INPUTS(node("exp", "inner", NO_ATTRS, INPUTS(flat))));

  options.compute_dtype = calibration ? COHORT_DTYPE_INT8 : COHORT_DTYPE_FLOAT32;
  options.calibration = calibration;
  options.narrow_names = &name;
  options.num_narrow_names = name ? 1 : 0;
  return try_simple_bind(out_executor, chain, desc("data", SHAPE(4, 8), NULL), &options);
}

static void a_node_that_cannot_is_refused(void **state) {
  static const char *const kCannot[] = {"inner", "last", "exp", "negative"}, *const kCan[] = {"fc", "act", "flat",
                                                                                              "relu", "FullyConnected"};
  cohort_executor *executor = NULL, *wide = NULL;
  cohort_calibration *calibration;
  size_t i;
  int told = 0;

  (void)state;
  ok(try_bind_chain(&wide, NULL, NULL));
  draw_free(arg_of(wide, "data"), 1, 0);
  draw_free(arg_of(wide, "fc_weight"), 2, 0);
  calibration = calibrated(wide, COHORT_CALIBRATION_MIN_MAX);
  for (i = 0; i < COUNT(kCannot); ++i) {
    fails(try_bind_chain(&executor, calibration, kCannot[i]), COHORT_ERROR_UNSUPPORTED,
          i % 2 ? "narrow_names: negative 'last' cannot compute in int8"
                : "narrow_names: exp 'inner' cannot compute in int8");
  }
  ok(cohort_set_log(COHORT_LOG_INFO, note_message, &told));
  ok(try_bind_chain(&executor, calibration, NULL));
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  cohort_executor_free(executor);
  for (i = 0; i < COUNT(kCan) && !told; ++i) {
    ok(try_bind_chain(&executor, calibration, kCan[i]));
    cohort_executor_free(executor);
  }
  executor = NULL;
  if (told)
    fails(try_bind_chain(&executor, calibration, "fc"), COHORT_ERROR_UNSUPPORTED, "'fc' cannot compute in int8");
  cohort_calibration_free(calibration);
  cohort_executor_free(wide);
}

#define AT_ONCE 4

typedef struct beginner {
  cohort_executor *executor;
  pthread_barrier_t *start;
  cohort_error *error;
} beginner;

static void *begin(void *argument) {
  beginner *self = argument;

  pthread_barrier_wait(self->start);
  self->error = cohort_executor_forward(self->executor, 0);
  if (!self->error) self->error = cohort_wait_all();
  return NULL;
}

/* Executors of one plan whose first passes, which bring the weights into the order of the kernels, run at once. */
static void executors_that_begin_at_once_answer_alike(void **state) {
  cohort_executor *wide = bound(COHORT_DTYPE_FLOAT32, NULL);
  cohort_calibration *calibration = calibrated(wide, COHORT_CALIBRATION_MIN_MAX);
  int round, i;

  (void)state;
  for (round = 0; round < 20; ++round) {
    pthread_t threads[AT_ONCE];
    pthread_barrier_t start;
    beginner all[AT_ONCE];
    float *expected = NULL;
    size_t count = 0;

    pthread_barrier_init(&start, NULL, AT_ONCE);
    for (i = 0; i < AT_ONCE; ++i) {
      all[i].executor = bound(COHORT_DTYPE_INT8, calibration);
      all[i].start = &start;
      all[i].error = NULL;
    }
    for (i = 0; i < AT_ONCE; ++i) assert_int_equal(pthread_create(&threads[i], NULL, begin, &all[i]), 0);
    for (i = 0; i < AT_ONCE; ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (i = 0; i < AT_ONCE; ++i) {
      float *found;

      ok(all[i].error);
      found = read_free(output_of(all[i].executor, 0), &count);
      if (!expected) {
        expected = found;
      } else {
        assert_memory_equal(found, expected, count * sizeof(float));
        free(found);
      }
      cohort_executor_free(all[i].executor);
    }
    free(expected);
    pthread_barrier_destroy(&start);
  }
  cohort_calibration_free(calibration);
  cohort_executor_free(wide);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_network_runs_in_bytes),
      TEST(ranges_that_were_kept_do_as_well),
      TEST(ranges_that_are_none_are_refused),
      TEST(layers_of_one_name_are_close),
      TEST(an_odd_layer_is_right),
      TEST(clips_are_parts_of_their_layers),
      TEST(weights_may_change),
      TEST(executors_that_begin_at_once_answer_alike),
      TEST(ranges_are_those_of_all_batches),
      TEST(nodes_of_one_name_have_one_range),
      TEST(entropy_cuts_off_what_is_far_out),
      TEST(what_cannot_be_is_refused),
      TEST(a_node_that_cannot_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
