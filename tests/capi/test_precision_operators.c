/* SPDX-License-Identifier: Apache-2.0 */
/* compute_dtype: each operator that computes in bfloat16, compared with rounded float32; which operators these are, and
 * how to exclude one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/executor_tests.h"
#include "support/numbers.h"

enum { kMostInputs = 4, kMostAttrs = 9 };

typedef struct input {
  const char *name; /* NULL: the end of the list */
  int64_t shape[5];
} input;

typedef struct layer {
  const char *op;
  const char *attrs[kMostAttrs];
  input inputs[kMostInputs];
} layer;

static const layer kLayers[] = {
    {"FullyConnected", {"num_hidden", "12"}, {{"data", {5, 30}}, {"weight", {12, 30}}, {"bias", {12}}}},
    {"Convolution",
     {"kernel", "(3, 3)", "num_filter", "16", "pad", "(1, 1)"},
     {{"data", {2, 16, 9, 7}}, {"weight", {16, 16, 3, 3}}, {"bias", {16}}}},
    {"Convolution",
     {"kernel", "(3, 3)", "num_filter", "32", "num_group", "32", "no_bias", "1"},
     {{"data", {2, 32, 9, 7}}, {"weight", {32, 1, 3, 3}}}},
    {"Deconvolution",
     {"kernel", "(3, 3)", "num_filter", "16", "stride", "(2, 2)", "no_bias", "0"},
     {{"data", {2, 32, 5, 6}}, {"weight", {32, 16, 3, 3}}, {"bias", {16}}}},
    {"dot", {NULL}, {{"lhs", {9, 20}}, {"rhs", {20, 14}}}},
    {"dot", {"transpose_a", "1", "transpose_b", "1"}, {{"lhs", {20, 9}}, {"rhs", {14, 20}}}},
    {"batch_dot", {NULL}, {{"lhs", {3, 7, 16}}, {"rhs", {3, 16, 5}}}},
    {"batch_dot", {"transpose_b", "1"}, {{"lhs", {3, 7, 16}}, {"rhs", {3, 5, 16}}}},
    {"batch_dot", {"transpose_a", "1"}, {{"lhs", {3, 16, 7}}, {"rhs", {3, 16, 5}}}},
    {"batch_dot", {"transpose_a", "1", "transpose_b", "1"}, {{"lhs", {3, 16, 7}}, {"rhs", {3, 5, 16}}}},
    {"_contrib_interleaved_matmul_selfatt_qk", {"heads", "2"}, {{"queries_keys_values", {6, 3, 48}}}},
    {"_contrib_interleaved_matmul_selfatt_valatt",
     {"heads", "2"},
     {{"queries_keys_values", {6, 3, 48}}, {"attention", {6, 6, 6}}}},
    {"_contrib_interleaved_matmul_encdec_qk", {"heads", "2"}, {{"queries", {6, 3, 16}}, {"keys_values", {5, 3, 32}}}},
    {"_contrib_interleaved_matmul_encdec_valatt",
     {"heads", "2"},
     {{"keys_values", {5, 3, 32}}, {"attention", {6, 6, 5}}}},
};

/* Fills the array with bfloat16 numbers in (-1, 1). */
static cohort_ndarray *drawn(cohort_ndarray *array, uint32_t seed) {
  size_t count, i;
  int64_t size = 0;
  float *values;

  ok(cohort_ndarray_size(array, &size));
  count = (size_t)size;
  values = malloc(count * sizeof(*values));
  assert_non_null(values);
  for (i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = rounded((float)(seed >> 8) / 8388608.0f - 1.0f);
  }
  ok(cohort_ndarray_write(array, values, count * sizeof(*values)));
  free(values);
  return array;
}

/* A head gradient for the only output. */
static cohort_ndarray *head_of(const cohort_executor *executor) {
  cohort_ndarray *output = output_of(executor, 0), *head = NULL;

  ok(cohort_ndarray_copy(output, NULL, &head));
  cohort_ndarray_free(output);
  return drawn(head, 99);
}

static void note_message(cohort_log_level level, const char *message, void *user_data) {
  (void)level;
  if (strstr(message, "compute_dtype")) *(int *)user_data = 1;
}

static cohort_executor *bound(const layer *of, cohort_dtype type) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *inputs[kMostInputs + 1] = {NULL};
  cohort_descs *known = no_descs();
  cohort_executor *executor;
  uint32_t i;

  options.grad_req = "write";
  options.compute_dtype = type;
  for (i = 0; i < kMostInputs && of->inputs[i].name; ++i) {
    int32_t axes = 0;

    while (axes < 5 && of->inputs[i].shape[axes]) ++axes;
    inputs[i] = variable(of->inputs[i].name);
    if (axes > 0) add_desc(known, of->inputs[i].name, of->inputs[i].shape, axes, NULL);
  }
  executor = simple_bind(node(of->op, "layer", of->attrs, inputs), known, &options);
  for (i = 0; i < kMostInputs && of->inputs[i].name; ++i) {
    cohort_ndarray_free(drawn(arg_of(executor, of->inputs[i].name), i + 1));
  }
  return executor;
}

/* Sums in float32 of products of bfloat16 differ by their order; the narrow result is rounded. Frees both. */
static void same_but_rounded(cohort_ndarray *narrow, cohort_ndarray *wide, int is_rounded, const char *what) {
  size_t num_narrow, num_wide, i;
  float *a = read_free(narrow, &num_narrow), *b = read_free(wide, &num_wide);

  assert_int_equal(num_narrow, num_wide);
  for (i = 0; i < num_wide; ++i) {
    if (is_rounded && a[i] != rounded(a[i])) fail_msg("%s[%zu] = %g is no bfloat16", what, i, (double)a[i]);
    if (!(fabs((double)a[i] - b[i]) <= fabs((double)b[i]) / 128 + 1e-4)) {
      fail_msg("%s[%zu]: %g, in float32 %g", what, i, (double)a[i], (double)b[i]);
    }
  }
  free(a);
  free(b);
}

static void is_float32_rounded(const layer *of, size_t num_passes) {
  cohort_executor *narrow, *wide;
  char what[128];
  int told = 0;
  size_t i;

  ok(cohort_set_log(COHORT_LOG_INFO, note_message, &told));
  narrow = bound(of, COHORT_DTYPE_BFLOAT16);
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  if (told && test_contexts()->device_type == COHORT_DEVICE_GPU) fail_msg("%s is not narrow", of->op);
  wide = bound(of, COHORT_DTYPE_FLOAT32);
  for (; num_passes > 0; --num_passes) {
    ok(cohort_executor_forward(narrow, 1));
    ok(cohort_executor_forward(wide, 1));
    same_but_rounded(output_of(narrow, 0), output_of(wide, 0), !told, of->op);
    ok(try_backward_with(narrow, head_of(narrow), 1));
    ok(try_backward_with(wide, head_of(wide), 1));
    for (i = 0; i < kMostInputs && of->inputs[i].name; ++i) {
      (void)snprintf(what, sizeof(what), "%s, gradient of %s", of->op, of->inputs[i].name);
      same_but_rounded(grad_of(narrow, of->inputs[i].name), grad_of(wide, of->inputs[i].name), 0, what);
    }
  }
  cohort_executor_free(narrow);
  cohort_executor_free(wide);
}

static void each_layer_is_float32_rounded(void **state) {
  size_t l;

  (void)state;
  for (l = 0; l < COUNT(kLayers); ++l) is_float32_rounded(&kLayers[l], 1);
}

/* Strides beyond the kernel width, windows that all reach into the padding, pointwise kernels over an odd number of
 * channels: oneDNN's gradients of such layers are wrong, or depend on uninitialised memory, which a second pass
 * shows. */
static void rare_gradients_are_float32_rounded(void **state) {
  static const layer kRare[] = {
      {"Convolution",
       {"kernel", "(2,)", "stride", "(3,)", "pad", "(1,)", "num_filter", "16"},
       {{"data", {4, 2, 1}}, {"weight", {16, 2, 2}}, {"bias", {16}}}},
      {"Convolution",
       {"kernel", "(5, 4)", "stride", "(2, 3)", "pad", "(2, 3)", "num_filter", "17"},
       {{"data", {2, 8, 2, 2}}, {"weight", {17, 8, 5, 4}}, {"bias", {17}}}},
      {"Convolution",
       {"kernel", "(3, 3, 1)", "stride", "(2, 2, 1)", "pad", "(1, 1, 0)", "num_filter", "40"},
       {{"data", {2, 33, 3, 4, 4}}, {"weight", {40, 33, 3, 3, 1}}, {"bias", {40}}}},
      {"Convolution",
       {"kernel", "(1, 3, 2)", "stride", "(1, 2, 2)", "pad", "(0, 1, 0)", "num_filter", "16"},
       {{"data", {1, 3, 4, 1, 2}}, {"weight", {16, 3, 1, 3, 2}}, {"bias", {16}}}},
      {"Convolution",
       {"kernel", "(5, 3, 5)", "stride", "(3, 3, 2)", "pad", "(4, 0, 0)", "num_filter", "16"},
       {{"data", {3, 3, 3, 4, 5}}, {"weight", {16, 3, 5, 3, 5}}, {"bias", {16}}}},
      {"Convolution",
       {"kernel", "(4, 1, 1)", "stride", "(2, 1, 1)", "pad", "(3, 0, 0)", "num_filter", "16"},
       {{"data", {2, 3, 3, 4, 4}}, {"weight", {16, 3, 4, 1, 1}}, {"bias", {16}}}},
      {"Convolution",
       {"kernel", "(1, 1)", "num_filter", "3", "no_bias", "1"},
       {{"data", {1, 3, 10, 3}}, {"weight", {3, 3, 1, 1}}}},
      {"Convolution",
       {"kernel", "(1, 1)", "num_filter", "21", "layout", "NHWC", "no_bias", "1"},
       {{"data", {2, 10, 6, 32}}, {"weight", {21, 1, 1, 32}}}},
      {"Deconvolution",
       {"kernel", "(5,)", "stride", "(2,)", "pad", "(4,)", "num_filter", "16"},
       {{"data", {3, 32, 3}}, {"weight", {32, 16, 5}}}},
  };
  size_t l;

  (void)state;
  for (l = 0; l < COUNT(kRare); ++l) is_float32_rounded(&kRare[l], 2);
}

/* ---- recurrent layers ------------------------------------------------------------------------------------------- */

enum { kTime = 5, kBatch = 6, kInputs = 24, kState = 40 };

static const layer kRecurrent[] = {
    {"RNN",
     {"mode", "lstm", "state_size", "40", "num_layers", "1"},
     {{"data", {kTime, kBatch, kInputs}},
      {"parameters", {0}},
      {"state", {1, kBatch, kState}},
      {"state_cell", {1, kBatch, kState}}}},
    {"RNN",
     {"mode", "gru", "state_size", "40", "num_layers", "1"},
     {{"data", {kTime, kBatch, kInputs}}, {"parameters", {0}}, {"state", {1, kBatch, kState}}}},
    {"RNN",
     {"mode", "rnn_tanh", "state_size", "40", "num_layers", "1"},
     {{"data", {kTime, kBatch, kInputs}}, {"parameters", {0}}, {"state", {1, kBatch, kState}}}},
    {"RNN",
     {"mode", "rnn_relu", "state_size", "40", "num_layers", "1"},
     {{"data", {kTime, kBatch, kInputs}}, {"parameters", {0}}, {"state", {1, kBatch, kState}}}},
    {"RNN",
     {"mode", "lstm", "state_size", "40", "num_layers", "2", "bidirectional", "1"},
     {{"data", {kTime, kBatch, kInputs}},
      {"parameters", {0}},
      {"state", {4, kBatch, kState}},
      {"state_cell", {4, kBatch, kState}}}},
};

/* An argument times a factor. */
static void scale_arg(cohort_executor *executor, const char *name, float factor) {
  cohort_ndarray *array = arg_of(executor, name), *copy = NULL;
  size_t count, i;
  float *values;

  ok(cohort_ndarray_copy(array, NULL, &copy));
  values = read_free(copy, &count);
  for (i = 0; i < count; ++i) values[i] *= factor;
  ok(cohort_ndarray_write(array, values, count * sizeof(*values)));
  cohort_ndarray_free(array);
  free(values);
}

/* Compares the arrays by the norm of their difference relative to their norm. */
static void alike(cohort_ndarray *narrow, cohort_ndarray *wide, double most, const char *what) {
  size_t count, same, i;
  float *a = read_free(narrow, &count), *b = read_free(wide, &same);
  double apart = 0, size = 0;

  assert_int_equal(count, same);
  for (i = 0; i < count; ++i) {
    apart += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    size += (double)b[i] * b[i];
  }
  assert_true(size > 0);
  if (!(sqrt(apart) <= most * sqrt(size))) fail_msg("%s: %g of its size apart", what, sqrt(apart / size));
  if (apart == 0) {
    if (test_contexts()->device_type == COHORT_DEVICE_GPU) fail_msg("%s is not narrow", what);
    print_message("%s: no bit differs\n", what);
  }
  free(a);
  free(b);
}

/* Factors of a product are off by up to 2^-9 of themselves each, and the error of a step is passed on to the steps
 * behind it: five, in each of two layers at most. Forward at worst 5 * 2^-8, if all errors have one sign. */
static void recurrent_layers_are_close(void **state) {
  size_t l, i;

  (void)state;
  for (l = 0; l < COUNT(kRecurrent); ++l) {
    const layer *const of = &kRecurrent[l];
    cohort_executor *narrow = bound(of, COHORT_DTYPE_BFLOAT16), *wide = bound(of, COHORT_DTYPE_FLOAT32);
    char what[128];

    scale_arg(narrow, "parameters", 0.125f);
    scale_arg(wide, "parameters", 0.125f);
    ok(cohort_executor_forward(narrow, 1));
    ok(cohort_executor_forward(wide, 1));
    (void)snprintf(what, sizeof(what), "%s", of->attrs[1]);
    alike(output_of(narrow, 0), output_of(wide, 0), 0.02, what);
    ok(try_backward_with(narrow, head_of(narrow), 1));
    ok(try_backward_with(wide, head_of(wide), 1));
    for (i = 0; i < kMostInputs && of->inputs[i].name; ++i) {
      (void)snprintf(what, sizeof(what), "%s, gradient of %s", of->attrs[1], of->inputs[i].name);
      alike(grad_of(narrow, of->inputs[i].name), grad_of(wide, of->inputs[i].name), 0.02, what);
    }
    cohort_executor_free(narrow);
    cohort_executor_free(wide);
  }
}

/* Factors there are rounded to 11 significant bits: an eighth of the error of bfloat16. */
static void a_gpu_computes_each_layer_in_float16(void **state) {
  size_t l, i;

  (void)state;
  if (test_contexts()->device_type != COHORT_DEVICE_GPU) skip();
  for (l = 0; l < COUNT(kLayers) + COUNT(kRecurrent); ++l) {
    const int recurrent = l >= COUNT(kLayers);
    const layer *const of = recurrent ? &kRecurrent[l - COUNT(kLayers)] : &kLayers[l];
    cohort_executor *narrow = bound(of, COHORT_DTYPE_FLOAT16), *wide = bound(of, COHORT_DTYPE_FLOAT32);
    char what[128];

    if (recurrent) scale_arg(narrow, "parameters", 0.125f);
    if (recurrent) scale_arg(wide, "parameters", 0.125f);
    ok(cohort_executor_forward(narrow, 1));
    ok(cohort_executor_forward(wide, 1));
    alike(output_of(narrow, 0), output_of(wide, 0), 0.0025, of->op);
    ok(try_backward_with(narrow, head_of(narrow), 1));
    ok(try_backward_with(wide, head_of(wide), 1));
    for (i = 0; i < kMostInputs && of->inputs[i].name; ++i) {
      (void)snprintf(what, sizeof(what), "%s, gradient of %s", of->op, of->inputs[i].name);
      if (strcmp(of->inputs[i].name, "bias") == 0) continue; /* a sum of heads: numbers of float16 */
      alike(grad_of(narrow, of->inputs[i].name), grad_of(wide, of->inputs[i].name), 0.0025, what);
    }
    cohort_executor_free(narrow);
    cohort_executor_free(wide);
  }
}

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/* An LSTM by hand: the state is rounded where it is multiplied, nothing else is. */
static void states_and_cells_stay_float32(void **state) {
  cohort_executor *narrow = bound(&kRecurrent[0], COHORT_DTYPE_BFLOAT16);
  size_t num_data, num_parameters, num_state, num_output, t, n, g, i;
  float *data, *parameters, *h, *c, *found;
  float gates[4 * kState];
  const size_t recurrent = (size_t)4 * kState * kInputs, biases = recurrent + (size_t)4 * kState * kState;

  (void)state;
  scale_arg(narrow, "parameters", 0.125f);
  ok(cohort_executor_forward(narrow, 0));
  data = read_free(arg_of(narrow, "data"), &num_data);
  parameters = read_free(arg_of(narrow, "parameters"), &num_parameters);
  h = read_free(arg_of(narrow, "state"), &num_state);
  c = read_free(arg_of(narrow, "state_cell"), &num_state);
  found = read_free(output_of(narrow, 0), &num_output);
  for (t = 0; t < kTime; ++t) {
    for (n = 0; n < kBatch; ++n) {
      for (g = 0; g < (size_t)4 * kState; ++g) {
        float sum = parameters[biases + g] + parameters[biases + (size_t)4 * kState + g];

        for (i = 0; i < kInputs; ++i) sum += parameters[g * kInputs + i] * data[(t * kBatch + n) * kInputs + i];
        for (i = 0; i < kState; ++i) sum += parameters[recurrent + g * kState + i] * rounded(h[n * kState + i]);
        gates[g] = sum;
      }
      for (i = 0; i < kState; ++i) {
        const float in = sigmoid(gates[i]), forget = sigmoid(gates[kState + i]), put = tanhf(gates[2 * kState + i]);
        float *const cell = &c[n * kState + i], *const hidden = &h[n * kState + i];
        const float result = found[(t * kBatch + n) * kState + i];

        *cell = forget * *cell + in * put;
        *hidden = sigmoid(gates[3 * kState + i]) * tanhf(*cell);
        if (!(fabsf(result - *hidden) <= fabsf(*hidden) / 256 + 2e-4f)) {
          fail_msg("step %zu, row %zu, unit %zu: %g, by hand %g", t, n, i, (double)result, (double)*hidden);
        }
      }
    }
  }
  free(data);
  free(parameters);
  free(h);
  free(c);
  free(found);
  cohort_executor_free(narrow);
}

/* Lengths of sequences are integers that bfloat16 cannot represent: 259 would become 260. */
static void lengths_are_not_rounded(void **state) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_descs *known = desc("data", SHAPE(260, 1, 16), NULL);
  cohort_symbol *const inputs[] = {variable("data"), variable("parameters"), variable("state"), variable("length"),
                                   NULL};
  cohort_executor *executor;
  cohort_ndarray *one;
  size_t count;
  float *values;

  (void)state;
  options.compute_dtype = COHORT_DTYPE_BFLOAT16;
  executor = simple_bind(
      node("RNN", "layer", ATTRS("mode", "rnn_tanh", "state_size", "16", "num_layers", "1", "use_sequence_length", "1"),
           inputs),
      known, &options);
  cohort_ndarray_free(drawn(arg_of(executor, "data"), 1));
  cohort_ndarray_free(drawn(arg_of(executor, "parameters"), 2));
  one = arg_of(executor, "length");
  ok(cohort_ndarray_fill(one, 259));
  cohort_ndarray_free(one);
  ok(cohort_executor_forward(executor, 0));
  values = read_free(output_of(executor, 0), &count);
  assert_int_equal(count, 260 * 16);
  assert_true(values[258 * 16] != 0);
  assert_true(values[259 * 16] == 0);
  free(values);
  cohort_executor_free(executor);
}

/* ---- which operators use it, and how to exclude one
 * ---------------------------------------------------------------- */

static void operators_say_what_they_do(void **state) {
  cohort_precision precision = -1;

  (void)state;
  ok(cohort_operator_precision("RNN", &precision));
  assert_int_equal(precision, COHORT_PRECISION_NARROW);
  ok(cohort_operator_precision("batch_dot", &precision));
  assert_int_equal(precision, COHORT_PRECISION_NARROW);
  ok(cohort_operator_precision("elemwise_add", &precision));
  assert_int_equal(precision, COHORT_PRECISION_FOLLOWS);
  ok(cohort_operator_precision("softmax", &precision));
  assert_int_equal(precision, COHORT_PRECISION_OWN);
  fails(cohort_operator_precision("no_such_operator", &precision), COHORT_ERROR_NAME, "no_such_operator");
  fails(cohort_operator_precision("dot", NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_precision");
}

/* Two layers, with other operators between and behind them. */
static cohort_symbol *network(void) {
  const char *const *const attrs = ATTRS("num_hidden", "8", "no_bias", "True");
  cohort_symbol *first = node("FullyConnected", "first", attrs, INPUTS(variable("data")));
  cohort_symbol *second =
      node("FullyConnected", "second", attrs, INPUTS(node("square", "sq", NO_ATTRS, INPUTS(first))));

  return node("tanh", "squash", NO_ATTRS, INPUTS(second));
}

static cohort_error *try_bind_with(cohort_executor **out_executor, const char *const *wide, const char *const *narrow) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.compute_dtype = COHORT_DTYPE_BFLOAT16;
  options.float32_names = wide;
  while (wide[options.num_float32_names]) ++options.num_float32_names;
  options.narrow_names = narrow;
  while (narrow[options.num_narrow_names]) ++options.num_narrow_names;
  return try_simple_bind(out_executor, network(), desc("data", SHAPE(4, 8), NULL), &options);
}

/* The nodes that compute in bfloat16 according to the debug text, in order. */
static void compute_narrow(const char *const *wide, const char *const *narrow, const char *expected) {
  cohort_executor *executor = NULL;
  char *found = calloc(1, 256), *text = NULL;
  const char *at, *words;

  assert_non_null(found);
  ok(try_bind_with(&executor, wide, narrow));
  ok(cohort_executor_debug_text(executor, &words));
  text = malloc(strlen(words) + 1);
  assert_non_null(text);
  strcpy(text, words);
  for (at = strtok(text, "\n"); at; at = strtok(NULL, "\n")) {
    static char name[64];

    if (strncmp(at, "Op:", 3) == 0) (void)snprintf(name, sizeof(name), "%.60s ", strstr(at, "Name=") + 5);
    if (strcmp(at, "Computes in bfloat16") == 0) strcat(found, name);
  }
  assert_string_equal(found, expected);
  free(found);
  free(text);
  cohort_executor_free(executor);
}

static int has_units(void) {
  cohort_executor *executor = NULL;
  int told = 0;

  ok(cohort_set_log(COHORT_LOG_INFO, note_message, &told));
  ok(try_bind_with(&executor, NO_NAMES, NO_NAMES));
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  cohort_executor_free(executor);
  return !told;
}

static void names_say_otherwise(void **state) {
  (void)state;
  if (!has_units()) skip();
  compute_narrow(NO_NAMES, NO_NAMES, "first second squash ");
  compute_narrow(NAMES("second"), NO_NAMES, "first ");
  compute_narrow(NAMES("FullyConnected"), NO_NAMES, "");
  compute_narrow(NAMES("FullyConnected"), NAMES("second"), "second squash ");
  compute_narrow(NAMES("first", "squash"), NAMES("square"), "sq second ");
  compute_narrow(NAMES("SoftmaxOutput"), NO_NAMES, "first second squash "); /* which this network does not have */
}

static void unknown_names_are_refused(void **state) {
  cohort_executor *executor = NULL;

  (void)state;
  fails(try_bind_with(&executor, NAMES("third"), NO_NAMES), COHORT_ERROR_NAME, "float32_names: 'third'");
  fails(try_bind_with(&executor, NO_NAMES, NAMES("data")), COHORT_ERROR_NAME, "narrow_names: 'data'");
  fails(try_bind_with(&executor, NAMES("first"), NAMES("first")), COHORT_ERROR_INVALID_ARGUMENT, "first");
  fails(try_bind_with(&executor, NAMES("broadcast_add"), NAMES("dot", "broadcast_plus")), COHORT_ERROR_INVALID_ARGUMENT,
        "'broadcast_plus' is also in float32_names, as 'broadcast_add'");
  assert_null(executor);
}

/* Integers are not cast. */
static void a_node_that_cannot_is_refused(void **state) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;
  const char *const names[] = {"count"};
  cohort_descs *known = no_descs();

  (void)state;
  options.compute_dtype = COHORT_DTYPE_BFLOAT16;
  options.narrow_names = names;
  options.num_narrow_names = 1;
  add_typed(known, "x", SHAPE(2), COHORT_DTYPE_INT32);
  fails(try_simple_bind(&executor, node("shape_array", "count", NO_ATTRS, INPUTS(variable("x"))), known, &options),
        COHORT_ERROR_UNSUPPORTED, "'count' cannot compute in bfloat16");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(recurrent_layers_are_close),    TEST(a_gpu_computes_each_layer_in_float16),
      TEST(states_and_cells_stay_float32), TEST(lengths_are_not_rounded),
      TEST(each_layer_is_float32_rounded), TEST(rare_gradients_are_float32_rounded),
      TEST(operators_say_what_they_do),    TEST(names_say_otherwise),
      TEST(unknown_names_are_refused),     TEST(a_node_that_cannot_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
