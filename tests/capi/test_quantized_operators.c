/* SPDX-License-Identifier: Apache-2.0 */
/* int8 layers: the cases that no golden case holds, because MXNet's own version is for other types, wrong, or refuses
 * them. */
#include <math.h>

#include "support/executor_tests.h"

/* Applies an operator with keys and values alternately. */
static cohort_error *apply(const char *op, const char *const *attrs, cohort_ndarray *const *inputs, size_t num_inputs,
                           cohort_arrays **outputs) {
  const char *keys[12], *values[12];
  size_t num_attrs = 0;

  for (; attrs[2 * num_attrs]; ++num_attrs) {
    keys[num_attrs] = attrs[2 * num_attrs];
    values[num_attrs] = attrs[2 * num_attrs + 1];
  }
  return cohort_operator_invoke(op, keys, values, num_attrs, inputs, num_inputs, NULL, 0, NULL, outputs);
}

static cohort_ndarray *output_at(const cohort_arrays *outputs, size_t index) {
  cohort_ndarray *array = NULL;

  ok(cohort_arrays_get(outputs, index, &array));
  return array;
}

static void free_all(cohort_ndarray *const *arrays, size_t num) {
  size_t i;

  for (i = 0; i < num; ++i) cohort_ndarray_free(arrays[i]);
}

static cohort_ndarray *noise(const int64_t *shape, int32_t num_axes, double low, double high, uint64_t seed) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_zeros(shape, num_axes, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_fill_uniform(array, low, high, seed));
  return array;
}

/* Quantizes an array to int8 with its bounds, into `to`: data, min, max. */
static void quantize(cohort_ndarray *array, const char *type, cohort_ndarray **to) {
  cohort_arrays *outputs = NULL;
  size_t i;

  ok(apply("_contrib_quantize_v2", ATTRS("out_type", type), &array, 1, &outputs));
  for (i = 0; i < 3; ++i) to[i] = output_at(outputs, i);
  cohort_arrays_free(outputs);
}

/* Checks that the numbers an int8 layer's output stands for are those of the float layer, to the precision of int8. */
static void layer_is_close(const char *layer, const char *quantized, const char *const *attrs, cohort_ndarray *data,
                           cohort_ndarray *weight, cohort_ndarray *bias, const char *type, float tolerance) {
  cohort_ndarray *inputs[9], *plain[] = {data, weight, bias}, *bytes[3], *real, *found;
  cohort_arrays *outputs = NULL;
  float expected[256], standing[256];
  int64_t size = 0;
  size_t i;

  ok(apply(layer, attrs, plain, 3, &outputs));
  real = output_at(outputs, 0);
  cohort_arrays_free(outputs);
  for (i = 0; i < 3; ++i) {
    quantize(plain[i], i == 0 ? type : "int8", bytes);
    inputs[i] = bytes[0];
    inputs[3 + 2 * i] = bytes[1];
    inputs[4 + 2 * i] = bytes[2];
  }
  ok(apply(quantized, attrs, inputs, 9, &outputs));
  for (i = 0; i < 3; ++i) bytes[i] = output_at(outputs, i);
  cohort_arrays_free(outputs);
  ok(apply("_contrib_dequantize", NO_ATTRS, bytes, 3, &outputs));
  found = output_at(outputs, 0);
  cohort_arrays_free(outputs);
  ok(cohort_ndarray_size(real, &size));
  assert_true(size <= 256);
  ok(cohort_ndarray_read(real, expected, (size_t)size * sizeof(float)));
  ok(cohort_ndarray_read(found, standing, (size_t)size * sizeof(float)));
  for (i = 0; i < (size_t)size; ++i) {
    if (!(fabsf(expected[i] - standing[i]) <= tolerance)) {
      fail_msg("%s of %s, element %zu: expected %g, found %g", quantized, type, i, (double)expected[i],
               (double)standing[i]);
    }
  }
  free_all(inputs, 9);
  free_all(plain, 3);
  free_all(bytes, 3);
  cohort_ndarray_free(real);
  cohort_ndarray_free(found);
}

static void layers_on_bytes_are_close_to_those_on_floats(void **state) {
  static const char *const types[] = {"int8", "uint8"};
  size_t i;

  (void)state;
  for (i = 0; i < 2; ++i) {
    const double low = i == 0 ? -1 : 0; /* uint8 represents nothing below 0 */

    layer_is_close("FullyConnected", "_contrib_quantized_fully_connected", ATTRS("num_hidden", "4"),
                   noise(SHAPE(3, 8), low, 1, 1), noise(SHAPE(4, 8), -2, 2, 2), noise(SHAPE(4), -0.5, 0.5, 3), types[i],
                   0.15f);
    layer_is_close("Convolution", "_contrib_quantized_conv",
                   ATTRS("num_filter", "4", "kernel", "(3, 2)", "stride", "(2, 1)", "pad", "(1, 1)", "num_group", "2"),
                   noise(SHAPE(2, 4, 5, 4), low, 1, 4), noise(SHAPE(4, 2, 3, 2), -2, 2, 5),
                   noise(SHAPE(4), -0.5, 0.5, 6), types[i], 0.2f);
    layer_is_close("Convolution", "_contrib_quantized_conv",
                   ATTRS("num_filter", "3", "kernel", "(3,)", "dilate", "(2,)", "layout", "NCW"),
                   noise(SHAPE(2, 2, 9), low, 1, 7), noise(SHAPE(3, 2, 3), -2, 2, 8), noise(SHAPE(3), -0.5, 0.5, 9),
                   types[i], 0.2f);
  }
}

/* The bound at which a bell-shaped histogram is cut off. */
static void a_histogram_is_cut_off_where_little_is_lost(void **state) {
  static const struct {
    int64_t bins;
    const char *few;
    float width, threshold;
  } cases[] = {{11, "3", 2, 2.545454f}, {11, "5", 2, 4}, {21, "5", 2, 2.857143f}, {201, "25", 4, 2.567164f}};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(cases); ++i) {
    const int64_t bins = cases[i].bins;
    float hist[256], edges[256];
    cohort_ndarray *inputs[2];
    cohort_arrays *outputs = NULL;
    int64_t k;

    for (k = 0; k < bins; ++k) {
      const float x = cases[i].width * (2 * (float)k / (float)(bins - 1) - 1);

      hist[k] = expf(-x * x) * 1000;
    }
    for (k = 0; k <= bins; ++k) edges[k] = 8 * (float)k / (float)bins - 4;
    inputs[0] = floats(SHAPE(bins), hist, (size_t)bins);
    inputs[1] = floats(SHAPE(bins + 1), edges, (size_t)bins + 1);
    ok(apply("_contrib_calibrate_entropy", ATTRS("num_quantized_bins", cases[i].few), inputs, 2, &outputs));
    holds_free(output_at(outputs, 0), cases[i].threshold);
    cohort_arrays_free(outputs);
    free_all(inputs, 2);
  }
}

/* The whole range is used: the least number becomes 0, the largest 255. */
static void bytes_with_a_shift_use_all_of_them(void **state) {
  cohort_ndarray *data = floats(SHAPE(4), FLOATS(-1, 0, 1, 4)), *bytes, *whole = NULL;
  cohort_arrays *outputs = NULL;

  (void)state;
  ok(apply("_contrib_quantize_asym", NO_ATTRS, &data, 1, &outputs));
  bytes = output_at(outputs, 0);
  assert_int_equal(dtype_of(bytes), COHORT_DTYPE_UINT8);
  ok(cohort_ndarray_cast(bytes, COHORT_DTYPE_FLOAT32, &whole));
  holds_free(whole, 0, 51, 102, 255);
  holds_free(output_at(outputs, 1), 51);
  holds_free(output_at(outputs, 2), 51);
  cohort_ndarray_free(bytes);
  cohort_ndarray_free(data);
  cohort_arrays_free(outputs);
}

/* int8 data pass through quantization unchanged, with the bounds of the attributes if there are any. */
static void bytes_stay_and_have_the_bounds_of_the_attributes(void **state) {
  const int8_t numbers[] = {-128, 0, 5, 127};
  cohort_ndarray *data = NULL, *bytes;
  cohort_arrays *outputs = NULL;
  int8_t found[4];

  (void)state;
  ok(cohort_ndarray_from_host(numbers, sizeof numbers, SHAPE(4), COHORT_DTYPE_INT8, NULL, &data));
  ok(apply("_contrib_quantize_v2", ATTRS("min_calib_range", "-2", "max_calib_range", "1.5"), &data, 1, &outputs));
  bytes = output_at(outputs, 0);
  ok(cohort_ndarray_read(bytes, found, sizeof found));
  assert_memory_equal(found, numbers, sizeof found);
  holds_free(output_at(outputs, 1), -2);
  holds_free(output_at(outputs, 2), 1.5f);
  cohort_ndarray_free(bytes);
  cohort_ndarray_free(data);
  cohort_arrays_free(outputs);
}

static void refused(const char *op, const char *const *attrs, cohort_ndarray *const *inputs, size_t num_inputs,
                    int32_t code, const char *words) {
  cohort_arrays *outputs = NULL;

  fails(apply(op, attrs, inputs, num_inputs, &outputs), code, words);
  assert_null(outputs);
}

/* DEF-71: relu of uint8 changes nothing, and the data stay uint8. */
static void relu_leaves_bytes_without_a_sign(void **state) {
  const uint8_t given[] = {0, 5, 127, 128, 200, 255};
  const float bounds[] = {0, 1};
  uint8_t found[6] = {0};
  int32_t dtype = -1;
  cohort_ndarray *inputs[3] = {NULL, NULL, NULL}, *result;
  cohort_arrays *outputs = NULL;
  size_t i;

  (void)state;
  ok(cohort_ndarray_from_host(given, sizeof(given), SHAPE(1, 6, 1, 1), COHORT_DTYPE_UINT8, NULL, &inputs[0]));
  for (i = 0; i < 2; ++i) {
    ok(cohort_ndarray_from_host(&bounds[i], sizeof(float), SHAPE(1), COHORT_DTYPE_FLOAT32, NULL, &inputs[1 + i]));
  }
  ok(apply("_contrib_quantized_act", ATTRS("act_type", "relu"), inputs, 3, &outputs));
  result = output_at(outputs, 0);
  ok(cohort_ndarray_dtype(result, &dtype));
  assert_int_equal(dtype, COHORT_DTYPE_UINT8);
  ok(cohort_ndarray_read(result, found, sizeof(found)));
  assert_memory_equal(found, given, sizeof(given));
  cohort_ndarray_free(result);
  cohort_arrays_free(outputs);
  free_all(inputs, 3);
}

static void what_is_no_byte_and_has_no_kernel_is_refused(void **state) {
  cohort_ndarray *x = counted(SHAPE(2, 4), 1), *one = counted(SHAPE(1), 1), *two = counted(SHAPE(2), 1), *bytes[3];
  const int32_t wrong = COHORT_ERROR_INVALID_ARGUMENT;

  (void)state;
  quantize(x, "int8", bytes);
  refused("_contrib_dequantize", NO_ATTRS, (cohort_ndarray *[]){x, one, one}, 3, COHORT_ERROR_DTYPE, "int8");
  refused("_contrib_dequantize", NO_ATTRS, (cohort_ndarray *[]){bytes[0], two, one}, 3, COHORT_ERROR_SHAPE, "bound");
  refused("_contrib_quantized_act", ATTRS("act_type", "tanh"), bytes, 3, wrong, "relu");
  refused("_contrib_quantized_pooling", ATTRS("kernel", "(1, 1)", "pool_type", "sum"), bytes, 3, wrong,
          "'max' or 'avg'");
  refused("_contrib_quantized_concat", ATTRS("num_args", "2"), bytes, 3, COHORT_ERROR_SHAPE, "expected 6 inputs");
  refused("_contrib_quantized_concat", ATTRS("num_args", "0"), bytes, 3, wrong, "num_args");
  refused("_contrib_calibrate_entropy", NO_ATTRS, (cohort_ndarray *[]){two, one}, 2, COHORT_ERROR_SHAPE, "odd");
  refused("_contrib_quantize_v2", ATTRS("out_type", "int4"), &x, 1, wrong, "out_type");
  free_all(bytes, 3);
  cohort_ndarray_free(x);
  cohort_ndarray_free(one);
  cohort_ndarray_free(two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(layers_on_bytes_are_close_to_those_on_floats),
      TEST(a_histogram_is_cut_off_where_little_is_lost),
      TEST(bytes_with_a_shift_use_all_of_them),
      TEST(bytes_stay_and_have_the_bounds_of_the_attributes),
      TEST(relu_leaves_bytes_without_a_sign),
      TEST(what_is_no_byte_and_has_no_kernel_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
