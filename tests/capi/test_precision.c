/* SPDX-License-Identifier: Apache-2.0 */
/* compute_dtype: products in bfloat16 within a network of float32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/executor_tests.h"
#include "support/numbers.h"

enum { kBatch = 4, kIn = 24, kOut = 16 };

static const char *const kCompared[] = {"data",    "conv_weight", "conv_bias", "bn_gamma",
                                        "bn_beta", "fc_weight",   "fc_bias"};

/* Random numbers in (-1, 1) that bfloat16 cannot represent. */
static float *draw(size_t count, uint32_t seed) {
  float *values = malloc(count * sizeof(*values));
  size_t i;

  assert_non_null(values);
  for (i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
  }
  return values;
}

/* The largest difference, relative to the largest number. */
static double apart_free(cohort_ndarray *left, cohort_ndarray *right) {
  size_t num_left, num_right, i;
  float *a = read_free(left, &num_left), *b = read_free(right, &num_right);
  double difference = 0, largest = 1e-30;

  assert_int_equal(num_left, num_right);
  for (i = 0; i < num_left; ++i) {
    assert_true(isfinite(a[i]) && isfinite(b[i]));
    difference = fmax(difference, fabs((double)a[i] - b[i]));
    largest = fmax(largest, fabs((double)b[i]));
  }
  free(a);
  free(b);
  return difference / largest;
}

static void fill_randomly(const cohort_executor *executor, int32_t list, const char *name, uint32_t seed,
                          float offset) {
  cohort_ndarray *array = array_of(executor, list, name);
  const size_t count = size_of(array);
  float *values = draw(count, seed);
  size_t i;

  for (i = 0; i < count; ++i) values[i] += offset;
  ok(cohort_ndarray_write(array, values, count * sizeof(*values)));
  cohort_ndarray_free(array);
  free(values);
}

/* Layers that compute in the narrow type, layers that follow, a view, a sum of two branches, and a head that is read
 * twice. */
static cohort_symbol *network(void) {
  cohort_symbol *conv = node("Convolution", "conv", ATTRS("kernel", "(3, 3)", "num_filter", "16", "pad", "(1, 1)"),
                             INPUTS(variable("data")));
  cohort_symbol *norm = node("BatchNorm", "bn", ATTRS("fix_gamma", "False"), INPUTS(conv));
  cohort_symbol *relu = node("Activation", "relu", ATTRS("act_type", "relu"), INPUTS(norm));
  cohort_symbol *pool =
      node("Pooling", "pool", ATTRS("kernel", "(2, 2)", "stride", "(2, 2)", "pool_type", "max"), INPUTS(relu));
  cohort_symbol *flat = node("Flatten", "flat", NO_ATTRS, INPUTS(pool));

  return node("tanh", "squash", NO_ATTRS,
              INPUTS(node("FullyConnected", "fc", ATTRS("num_hidden", "16"), INPUTS(flat))));
}

static cohort_executor *bound(cohort_symbol *symbol, cohort_descs *known, const char *grad_req, cohort_dtype type) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.grad_req = grad_req;
  options.compute_dtype = type;
  return simple_bind(symbol, known, &options);
}

static cohort_executor *bound_network(const char *grad_req, cohort_dtype type) {
  cohort_executor *executor = bound(network(), desc("data", SHAPE(4, 16, 8, 8), NULL), grad_req, type);
  uint32_t i;

  for (i = 0; i < sizeof(kCompared) / sizeof(*kCompared); ++i) {
    fill_randomly(executor, COHORT_EXECUTOR_ARGS, kCompared[i], i + 1, strcmp(kCompared[i], "bn_gamma") == 0 ? 2 : 0);
  }
  fill_randomly(executor, COHORT_EXECUTOR_AUX, "bn_moving_mean", 77, 0);
  fill_randomly(executor, COHORT_EXECUTOR_AUX, "bn_moving_var", 78, 20);
  return executor;
}

static cohort_ndarray *head(void) {
  float *values = draw(kBatch * kOut, 99);
  cohort_ndarray *array = floats(SHAPE(kBatch, kOut), values, kBatch * kOut);

  free(values);
  return array;
}

/* ---- one layer ----------------------------------------------------------------------------------------------------
 */

static void note_message(cohort_log_level level, const char *message, void *user_data) {
  (void)level;
  if (strstr(message, "compute_dtype")) *(int *)user_data = 1;
}

/* A product is that of the rounded factors, summed in float32 and rounded, if the processor has units for it; otherwise
 * it is that of float32, and a message says so. */
static void a_product_is_that_of_rounded_factors(void **state) {
  cohort_executor *executor;
  float *x = draw(kBatch * kIn, 1), *w = draw(kOut * kIn, 2), *y;
  size_t count, i, j, k;
  int told = 0;

  (void)state;
  ok(cohort_set_log(COHORT_LOG_INFO, note_message, &told));
  executor = bound(node("FullyConnected", "fc", ATTRS("num_hidden", "16", "no_bias", "True"), INPUTS(variable("x"))),
                   desc("x", SHAPE(kBatch, kIn), NULL), NULL, COHORT_DTYPE_BFLOAT16);
  set_array(executor, COHORT_EXECUTOR_ARGS, "x", x, kBatch * kIn);
  set_array(executor, COHORT_EXECUTOR_ARGS, "fc_weight", w, kOut * kIn);
  ok(cohort_executor_forward(executor, 0));
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  y = read_free(output_of(executor, 0), &count);
  for (i = 0; i < kBatch; ++i) {
    for (j = 0; j < kOut; ++j) {
      double sum = 0;
      for (k = 0; k < kIn; ++k) {
        const float a = x[i * kIn + k], b = w[j * kIn + k];
        sum += told ? (double)a * b : (double)rounded(a) * rounded(b);
      }
      /* Half a unit in the last place of bfloat16, plus the rounding errors of a sum in float32. */
      assert_true(fabs(y[i * kOut + j] - sum) <= (told ? 0 : fabs(sum) / 256) + 1e-5);
      if (!told) assert_true(y[i * kOut + j] == rounded(y[i * kOut + j]));
    }
  }
  free(x);
  free(w);
  free(y);
  cohort_executor_free(executor);
}

/* ---- a network ----------------------------------------------------------------------------------------------------
 */

/* The largest difference so far. */
static void near_float32(cohort_dtype type, double most) {
  cohort_executor *wide = bound_network("write", COHORT_DTYPE_FLOAT32);
  cohort_executor *narrow = bound_network("write", type);
  size_t i;

  ok(cohort_executor_forward(wide, 0));
  ok(cohort_executor_forward(narrow, 0));
  assert_true(apart_free(output_of(narrow, 0), output_of(wide, 0)) < most);
  ok(cohort_executor_forward(wide, 1));
  ok(cohort_executor_forward(narrow, 1));
  assert_true(apart_free(output_of(narrow, 0), output_of(wide, 0)) < most);
  ok(try_backward_with(wide, head(), 1));
  ok(try_backward_with(narrow, head(), 1));
  for (i = 0; i < sizeof(kCompared) / sizeof(*kCompared); ++i) {
    /* The bias before a norm has a gradient of rounding errors only. */
    if (strcmp(kCompared[i], "conv_bias") == 0) continue;
    assert_true(apart_free(grad_of(narrow, kCompared[i]), grad_of(wide, kCompared[i])) < most);
  }
  assert_true(apart_free(aux_of(narrow, "bn_moving_mean"), aux_of(wide, "bn_moving_mean")) < 0.01);
  assert_true(apart_free(aux_of(narrow, "bn_moving_var"), aux_of(wide, "bn_moving_var")) < 0.01);
  cohort_executor_free(wide);
  cohort_executor_free(narrow);
}

static void outputs_and_gradients_are_near_those_of_float32(void **state) {
  (void)state;
  near_float32(COHORT_DTYPE_BFLOAT16, 0.1);
}

/* Products in float16 have three bits more: with those of bfloat16 this bound fails. */
static void a_gpu_computes_in_float16(void **state) {
  cohort_executor *narrow, *wide;
  double apart;

  (void)state;
  if (test_contexts()->device_type != COHORT_DEVICE_GPU) skip();
  near_float32(COHORT_DTYPE_FLOAT16, 0.0125);
  wide = bound_network(NULL, COHORT_DTYPE_FLOAT32);
  narrow = bound_network(NULL, COHORT_DTYPE_FLOAT16);
  ok(cohort_executor_forward(wide, 0));
  ok(cohort_executor_forward(narrow, 0));
  apart = apart_free(output_of(narrow, 0), output_of(wide, 0));
  assert_true(apart > 1e-5);
  cohort_executor_free(wide);
  cohort_executor_free(narrow);
}

/* y = x w^T and its gradients for head gradients of ones: those of x sum columns of w, those of w rows of x. */
static void of_product(cohort_bool tf32, const char *in_float32, float *output, float *gradient) {
  enum { kSide = 64 };
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor;
  float *x = draw(kSide * kSide, 1), *w = draw(kSide * kSide, 2), *found;
  cohort_ndarray *heads = NULL;
  const int64_t shape[] = {kSide, kSide};
  size_t count;

  options.grad_req = "write";
  options.tf32 = tf32;
  options.float32_names = &in_float32;
  options.num_float32_names = in_float32 != NULL;
  executor =
      simple_bind(node("FullyConnected", "fc", ATTRS("num_hidden", "64", "no_bias", "True"), INPUTS(variable("x"))),
                  desc("x", SHAPE(kSide, kSide), NULL), &options);
  set_array(executor, COHORT_EXECUTOR_ARGS, "x", x, kSide * kSide);
  set_array(executor, COHORT_EXECUTOR_ARGS, "fc_weight", w, kSide * kSide);
  ok(cohort_executor_forward(executor, 1));
  found = read_free(output_of(executor, 0), &count);
  memcpy(output, found, count * sizeof(*found));
  free(found);
  ok(cohort_ndarray_full(shape, 2, COHORT_DTYPE_FLOAT32, NULL, 1, &heads));
  ok(try_backward_with(executor, heads, 1));
  found = read_free(grad_of(executor, "x"), &count);
  memcpy(gradient, found, count * sizeof(*found));
  free(found);
  free(x);
  free(w);
  cohort_executor_free(executor);
}

/* A factor in (-1, 1) is off by less than 2^-11 at worst, in each of 64 products. */
static void a_gpu_may_round_factors_to_tf32(void **state) {
  static float exact[2][4096], allowed[2][4096], named[2][4096];
  double apart[2] = {0, 0};
  size_t k, i;

  (void)state;
  of_product(0, NULL, exact[0], exact[1]);
  of_product(1, NULL, allowed[0], allowed[1]);
  of_product(1, "fc", named[0], named[1]);
  assert_memory_equal(exact, named, sizeof exact);
  of_product(1, "FullyConnected", named[0], named[1]);
  assert_memory_equal(exact, named, sizeof exact);
  for (k = 0; k < 2; ++k) {
    for (i = 0; i < 4096; ++i) apart[k] = fmax(apart[k], fabs((double)exact[k][i] - allowed[k][i]));
    if (test_contexts()->device_type == COHORT_DEVICE_GPU) {
      assert_true(apart[k] > 1e-5 && apart[k] < 2 * 64.0 / 2048);
    } else {
      assert_true(apart[k] == 0);
    }
  }
}

static void gradients_are_added_in_float32(void **state) {
  cohort_executor *once = bound_network("write", COHORT_DTYPE_BFLOAT16);
  cohort_executor *twice = bound_network("add", COHORT_DTYPE_BFLOAT16);
  size_t count, i;
  float *one, *two;

  (void)state;
  ok(cohort_executor_forward(once, 1));
  ok(try_backward_with(once, head(), 1));
  for (i = 0; i < 2; ++i) {
    ok(cohort_executor_forward(twice, 1));
    ok(try_backward_with(twice, head(), 1));
  }
  one = read_free(grad_of(once, "fc_weight"), &count);
  two = read_free(grad_of(twice, "fc_weight"), &count);
  for (i = 0; i < count; ++i) assert_true(two[i] == 2 * one[i]);
  free(one);
  free(two);
  cohort_executor_free(once);
  cohort_executor_free(twice);
}

typedef struct reports {
  int num_arrays, num_of_data; /* of the latter: gradients of fc's data */
} reports;

static void count_arrays(const char *name, cohort_ndarray *array, void *user_data) {
  reports *found = user_data;

  (void)size_of(array);
  ++found->num_arrays;
  found->num_of_data += strcmp(name, "fc_backward_output0") == 0;
}

/* A monitor sees every array in the network's type, once, and changes nothing. */
static void a_monitor_changes_nothing(void **state) {
  cohort_executor *alone = bound_network("write", COHORT_DTYPE_BFLOAT16);
  cohort_executor *watched = bound_network("write", COHORT_DTYPE_BFLOAT16);
  reports found = {0, 0};

  (void)state;
  ok(cohort_executor_set_monitor(watched, count_arrays, &found, 0));
  ok(cohort_executor_forward(alone, 1));
  ok(cohort_executor_forward(watched, 1));
  assert_true(found.num_arrays >= 7);
  assert_true(apart_free(output_of(watched, 0), output_of(alone, 0)) < 0.02);
  ok(try_backward_with(alone, head(), 1));
  ok(try_backward_with(watched, head(), 1));
  assert_int_equal(found.num_of_data, 1);
  assert_true(apart_free(grad_of(watched, "fc_weight"), grad_of(alone, "fc_weight")) < 0.02);
  cohort_executor_free(alone);
  cohort_executor_free(watched);
}

static cohort_symbol *layer(const char *name, cohort_symbol *data) {
  return node("FullyConnected", name, ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(data));
}

/* A second handle on the same symbol. */
static cohort_symbol *again(const cohort_symbol *symbol) {
  cohort_symbol *same = NULL;

  ok(cohort_symbol_output(symbol, 0, &same));
  return same;
}

/* The outputs of both; frees them. */
static cohort_symbol *both(cohort_symbol *first, cohort_symbol *second) {
  cohort_symbol *pair[2], *all = NULL;

  pair[0] = first;
  pair[1] = second;
  ok(cohort_symbol_group(pair, 2, &all));
  cohort_symbol_free(first);
  cohort_symbol_free(second);
  return all;
}

/* BWD-08: backward reads arguments as they are when it is called. */
static void backward_reads_weights_as_they_are(void **state) {
  cohort_executor *executor =
      bound(layer("fc", variable("x")), desc("x", SHAPE(1, 2), NULL), "write", COHORT_DTYPE_BFLOAT16);

  (void)state;
  set_arg(executor, "x", 1, 2);
  set_arg(executor, "fc_weight", 1, 2, 3, 4);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 5, 11);
  set_arg(executor, "fc_weight", 10, 20, 30, 40);
  ok(try_backward_with(executor, floats(SHAPE(1, 2), FLOATS(1, 1)), 1));
  holds_free(grad_of(executor, "x"), 40, 60);
  set_arg(executor, "x", 8, 16);
  ok(try_backward_with(executor, floats(SHAPE(1, 2), FLOATS(1, 1)), 1));
  holds_free(grad_of(executor, "fc_weight"), 8, 16, 8, 16);
  cohort_executor_free(executor);
}

/* A weight that a node of the network writes is cast after that, each time. */
static void a_weight_may_be_written_within(void **state) {
  int32_t is_train;

  (void)state;
  for (is_train = 0; is_train <= 1; ++is_train) {
    cohort_symbol *w = variable("w"), *same = again(w);
    cohort_symbol *update = node("sgd_mom_update", "update", ATTRS("lr", "1", "momentum", "1"),
                                 INPUTS(variable("other"), variable("g"), w));
    cohort_symbol *fc =
        node("FullyConnected", "fc", ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(variable("x"), same));
    cohort_executor *executor =
        bound(both(update, fc), desc("x", SHAPE(1, 2), NULL), is_train ? "write" : NULL, COHORT_DTYPE_BFLOAT16);

    set_arg(executor, "x", 1, 1);
    set_arg(executor, "w", 1, 2, 3, 4);
    set_arg(executor, "g", 1, 1, 1, 1);
    ok(cohort_executor_forward(executor, is_train));
    holds_free(output_of(executor, 1), 1, 5);
    ok(cohort_executor_forward(executor, is_train));
    holds_free(output_of(executor, 1), -1, 3);
    cohort_executor_free(executor);
  }
}

/* A step of a partial pass uses the values that are there, whichever other steps have run. */
static void steps_may_be_repeated(void **state) {
  cohort_symbol *x = variable("x"), *same = again(x);
  cohort_executor *executor =
      bound(both(layer("one", x), layer("two", same)), desc("x", SHAPE(1, 2), NULL), NULL, COHORT_DTYPE_BFLOAT16);
  int32_t left = 1, step;

  (void)state;
  set_arg(executor, "x", 1, 2);
  set_arg(executor, "one_weight", 1, 0, 0, 1);
  set_arg(executor, "two_weight", 2, 0, 0, 2);
  for (step = 0; left > 0; ++step) ok(cohort_executor_partial_forward(executor, 0, step, &left));
  holds_free(output_of(executor, 1), 2, 4);
  set_arg(executor, "x", 3, 5);
  ok(cohort_executor_partial_forward(executor, 0, step - 1, &left)); /* the last node: two */
  holds_free(output_of(executor, 0), 1, 2);
  holds_free(output_of(executor, 1), 6, 10);
  cohort_executor_free(executor);
}

/* An operator behind no layer computes in float32, even if a layer beside it reads the same input. */
static void operators_behind_no_layer_are_exact(void **state) {
  cohort_symbol *x = variable("x"), *same = again(x);
  cohort_executor *executor = bound(both(layer("fc", x), node("relu", "r", NO_ATTRS, INPUTS(same))),
                                    desc("x", SHAPE(1, 2), NULL), NULL, COHORT_DTYPE_BFLOAT16);

  (void)state;
  set_arg(executor, "x", 1.0001f, 2.0003f);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 1), 1.0001f, 2.0003f);
  cohort_executor_free(executor);
}

/* Layers that share a weight: their gradients are added in float32. bfloat16 cannot represent 1 + 1/512. */
static void gradients_of_a_shared_weight_are_added_in_float32(void **state) {
  cohort_symbol *w = variable("w"), *same = again(w);
  cohort_descs *known = desc("x", SHAPE(1, 1), NULL);
  cohort_ndarray *heads[2];
  cohort_executor *executor;

  (void)state;
  add_desc(known, "y", SHAPE(1, 1), NULL);
  executor =
      bound(both(node("FullyConnected", "a", ATTRS("num_hidden", "1", "no_bias", "True"), INPUTS(variable("x"), w)),
                 node("FullyConnected", "b", ATTRS("num_hidden", "1", "no_bias", "True"), INPUTS(variable("y"), same))),
            known, "write", COHORT_DTYPE_BFLOAT16);
  set_arg(executor, "x", 1);
  set_arg(executor, "y", 1.0f / 512);
  ok(cohort_executor_forward(executor, 1));
  heads[0] = floats(SHAPE(1, 1), FLOATS(1));
  heads[1] = floats(SHAPE(1, 1), FLOATS(1));
  ok(cohort_executor_backward(executor, heads, 2, 1));
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(heads[1]);
  holds_free(grad_of(executor, "w"), 1 + 1.0f / 512);
  cohort_executor_free(executor);
}

/* ---- compute_dtype and binding
 * ------------------------------------------------------------------------------------ */

static void other_types_are_refused(void **state) {
  const int32_t types[] = {COHORT_DTYPE_FLOAT64, COHORT_DTYPE_INT8, COHORT_DTYPE_NONE, 99};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < sizeof(types) / sizeof(*types); ++i) {
    options.compute_dtype = types[i];
    fails(try_simple_bind(&executor, network(), desc("data", SHAPE(4, 16, 8, 8), NULL), &options),
          COHORT_ERROR_INVALID_ARGUMENT, "compute_dtype: expected");
  }
  if (test_contexts()->device_type != COHORT_DEVICE_CPU) return;
  options.compute_dtype = COHORT_DTYPE_FLOAT16;
  fails(try_simple_bind(&executor, network(), desc("data", SHAPE(4, 16, 8, 8), NULL), &options),
        COHORT_ERROR_UNSUPPORTED, "compute_dtype float16: expected gpu contexts alone, found cpu(0)");
}

/* `layer` on casts of `data` and of the variable `weight`, and its result clipped to [low, high]. */
static cohort_symbol *cut_layer(const char *layer, const char *name, const char *size, cohort_symbol *data,
                                const char *type, const char *low, const char *high, cohort_symbol **out_uncut) {
  const int is_fc = strcmp(layer, "FullyConnected") == 0;
  cohort_symbol *weight = node("Cast", "", ATTRS("dtype", type), INPUTS(variable(is_fc ? "fc_weight" : "conv_weight")));
  cohort_symbol *made =
      is_fc ? node(layer, name, ATTRS("num_hidden", size, "no_bias", "True"), INPUTS(data, weight))
            : node(layer, name, ATTRS("kernel", "(3, 3)", "num_filter", size, "no_bias", "True"), INPUTS(data, weight));

  ok(cohort_symbol_output(made, 0, out_uncut));
  return node("clip", "", ATTRS("a_min", low, "a_max", high), INPUTS(made));
}

/* A fused clip gives what the clip operator gives, in each type, with oneDNN and with plain loops. */
static void layers_clip_as_clip_does(void **state) {
  static const char *const kTypes[] = {"float32", "float64", "float16"};
  size_t t, narrow;

  (void)state;
  for (t = 0; t < COUNT(kTypes); ++t) {
    for (narrow = 0; narrow < (t == 0 ? 2 : 1); ++narrow) {
      cohort_executor *executor[2] = {NULL, NULL};
      size_t apart;

      for (apart = 0; apart < 2; ++apart) {
        cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
        cohort_symbol *heads[3] = {NULL, NULL, NULL}, *all = NULL;
        cohort_symbol *data = node("Cast", "", ATTRS("dtype", kTypes[t]), INPUTS(variable("data")));
        cohort_symbol *conv = cut_layer("Convolution", "conv", "16", data, kTypes[t], "-0.25", "0.75", &heads[1]);
        cohort_symbol *fc = cut_layer("FullyConnected", "fc", "6", conv, kTypes[t], "-0.125", "6", &heads[2]);

        options.compute_dtype = narrow ? COHORT_DTYPE_BFLOAT16 : COHORT_DTYPE_FLOAT32;
        heads[0] = node("Cast", "", ATTRS("dtype", "float32"), INPUTS(fc));
        ok(cohort_symbol_group(heads, apart ? 3 : 1, &all)); /* a requested output is not fused */
        executor[apart] = simple_bind(all, desc("data", SHAPE(kBatch, 8, 6, 6), NULL), &options);
        fill_randomly(executor[apart], COHORT_EXECUTOR_ARGS, "data", 1, 0);
        fill_randomly(executor[apart], COHORT_EXECUTOR_ARGS, "conv_weight", 2, 0);
        fill_randomly(executor[apart], COHORT_EXECUTOR_ARGS, "fc_weight", 3, 0);
        ok(cohort_executor_forward(executor[apart], 0));
        cohort_symbol_free(heads[0]);
        cohort_symbol_free(heads[1]);
        cohort_symbol_free(heads[2]);
      }
      assert_true(apart_free(output_of(executor[0], 0), output_of(executor[1], 0)) == 0);
      cohort_executor_free(executor[0]);
      cohort_executor_free(executor[1]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_product_is_that_of_rounded_factors),
      TEST(outputs_and_gradients_are_near_those_of_float32),
      TEST(a_gpu_computes_in_float16),
      TEST(a_gpu_may_round_factors_to_tf32),
      TEST(gradients_are_added_in_float32),
      TEST(gradients_of_a_shared_weight_are_added_in_float32),
      TEST(a_monitor_changes_nothing),
      TEST(backward_reads_weights_as_they_are),
      TEST(a_weight_may_be_written_within),
      TEST(steps_may_be_repeated),
      TEST(operators_behind_no_layer_are_exact),
      TEST(layers_clip_as_clip_does),
      TEST(other_types_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
