/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that MXNet has fused, with their graphs inside, or that are fused here: the cases that the golden cases do not
 * cover. Those compare results with MXNet's. */
#include <math.h>
#include <stdio.h>

#include "support/executor_tests.h"

static cohort_symbol *convolution(cohort_symbol *data) {
  return node("Convolution", "c", ATTRS("kernel", "(1, 1)", "num_filter", "1", "no_bias", "True"),
              INPUTS(data, variable("w")));
}

static cohort_symbol *norm(cohort_symbol *data) {
  return node("BatchNorm", "bn", ATTRS("eps", "0.5", "fix_gamma", "False"),
              INPUTS(data, variable("g"), variable("b"), variable("m"), variable("v")));
}

static cohort_symbol *dense(void) {
  return node("FullyConnected", "f", ATTRS("num_hidden", "1", "no_bias", "True"), INPUTS(variable("x"), variable("w")));
}

/* Training uses the moving statistics too, and does not change them; no gradient flows back. */
static void statistics_stay_in_training(void **state) {
  cohort_symbol *layer = node("_sg_mkldnn_conv", "layer", ATTRS("with_bn", "true"),
                              INPUTS(norm(convolution(variable("x"))), variable("data"), variable("weight"),
                                     variable("gamma"), variable("beta"), variable("mean"), variable("var")));
  cohort_executor *executor = simple_bind_with(layer, desc("data", SHAPE(1, 1, 1, 2), NULL), "write");

  (void)state;
  set_arg(executor, "data", 5, -7);
  set_arg(executor, "weight", 3);
  set_arg(executor, "gamma", 2);
  set_arg(executor, "beta", 1);
  set_aux(executor, "mean", 4);
  set_aux(executor, "var", 3.5f);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 12, -24); /* (3 x - 4) * 2 / sqrt(3.5 + 0.5) + 1 */
  {
    cohort_ndarray *head = floats(SHAPE(1, 1, 1, 2), FLOATS(1, 1));

    ok(cohort_executor_backward(executor, &head, 1, 1));
    cohort_ndarray_free(head);
  }
  holds_free(grad_of(executor, "weight"), 0);
  holds_free(aux_of(executor, "mean"), 4);
  holds_free(aux_of(executor, "var"), 3.5f);
  cohort_executor_free(executor);
}

static void note_name(const char *name, cohort_ndarray *array, void *user_data) {
  (void)array;
  strncat(user_data, name, 60);
}

/* In inference the plan contains the inner steps and keeps what it derives from weights and statistics until these
 * change; a monitor is shown the node as one. */
static void derived_weights_follow_the_weights(void **state) {
  cohort_symbol *layer = node("_sg_mkldnn_conv", "layer", ATTRS("with_bn", "true"),
                              INPUTS(norm(convolution(variable("x"))), variable("data"), variable("weight"),
                                     variable("gamma"), variable("beta"), variable("mean"), variable("var")));
  cohort_executor *executor = simple_bind_with(layer, desc("data", SHAPE(1, 1, 1, 2), NULL), "null");
  const char *text = NULL;
  char names[128] = "";

  (void)state;
  ok(cohort_executor_debug_text(executor, &text));
  assert_non_null(strstr(text, "Convolution 'layer'"));
  set_arg(executor, "data", 5, -7);
  set_arg(executor, "weight", 3);
  set_arg(executor, "gamma", 2);
  set_aux(executor, "var", 3.5f);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 15, -21); /* (3 x - 0) * 2 / sqrt(3.5 + 0.5) */
  set_arg(executor, "weight", 4);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 20, -28);
  set_aux(executor, "mean", 1);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 19, -29);
  ok(cohort_executor_set_monitor(executor, note_name, names, 0));
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(names, "layer_output");
  holds_free(output_of(executor, 0), 19, -29);
  cohort_executor_free(executor);
}

/* A symbol that was loaded is saved as it was given. */
static void a_file_keeps_the_layer(void **state) {
  cohort_symbol *layer =
      node("_sg_mkldnn_conv", "layer", ATTRS("quantized", "true", "min_calib_range", "-1", "max_calib_range", "1"),
           INPUTS(convolution(variable("x")), variable("data"), variable("weight"), variable("low"), variable("high")));
  const char *first = NULL, *second = NULL;
  cohort_symbol *again;

  (void)state;
  ok(cohort_symbol_to_json(layer, &first));
  assert_non_null(strstr(first, "\"op\": \"Convolution\""));
  assert_null(strstr(first, "_contrib_dequantize"));
  ok(cohort_symbol_from_json(first, strlen(first), &again));
  ok(cohort_symbol_to_json(again, &second));
  assert_string_equal(first, second);
  cohort_symbol_free(layer);
  cohort_symbol_free(again);
}

/* Makes a layer of the graph, whose inputs become variables of the node. */
static cohort_error *try_layer(const char *op, const char *const *attrs, cohort_symbol *graph) {
  const char *keys[4], *values[4];
  cohort_symbol *made = NULL;
  cohort_error *error;
  size_t num = 0;

  for (; attrs[2 * num]; ++num) keys[num] = attrs[2 * num], values[num] = attrs[2 * num + 1];
  error = cohort_symbol_create(op, "layer", keys, values, num, &graph, NULL, graph ? 1 : 0, &made);
  cohort_symbol_free(graph);
  cohort_symbol_free(made);
  return error;
}

#define REFUSED(op, attrs, graph, what) fails(try_layer(op, attrs, graph), COHORT_ERROR_INVALID_ARGUMENT, what)
#define CONVOLUTION "_sg_mkldnn_conv"
#define DENSE "_sg_mkldnn_fully_connected"

static void what_is_no_such_layer_is_refused(void **state) {
  (void)state;
  ok(try_layer(CONVOLUTION, NO_ATTRS, convolution(variable("x"))));
  REFUSED(CONVOLUTION, NO_ATTRS, NULL, "expected 1 sub-graphs, found 0");
  REFUSED(CONVOLUTION, NO_ATTRS, variable("x"), "node 'x_copy' (_copy): expected a Convolution before it");
  REFUSED(CONVOLUTION, NO_ATTRS, dense(), "node 'f' (FullyConnected): expected a Convolution before it");
  REFUSED(DENSE, NO_ATTRS, convolution(variable("x")), "expected a FullyConnected before it");
  REFUSED(CONVOLUTION, NO_ATTRS, convolution(convolution(variable("x"))), "one Convolution, found two");
  REFUSED(CONVOLUTION, NO_ATTRS, convolution(node("relu", "r", NO_ATTRS, INPUTS(variable("x")))),
          "node 'r' (relu): expected a Convolution before it");
  REFUSED(CONVOLUTION, NO_ATTRS, node("square", "s", NO_ATTRS, INPUTS(convolution(variable("x")))),
          "node 's' (square): expected an operator that is fused with Convolution");
  REFUSED(CONVOLUTION, NO_ATTRS, norm(convolution(variable("x"))), "a BatchNorm where 'with_bn' is true");
  REFUSED(CONVOLUTION, ATTRS("with_bn", "true"), convolution(variable("x")), "a BatchNorm where 'with_bn' is true");
  REFUSED(CONVOLUTION, ATTRS("with_sum", "true"), convolution(variable("x")), "a sum where 'with_sum' is true");
  REFUSED(CONVOLUTION, ATTRS("with_bn", "maybe"), norm(convolution(variable("x"))), "with_bn");
  REFUSED(DENSE, ATTRS("quantized", "True", "channel_wise_quantize", "True"), dense(),
          "expected 'min_calib_range' and 'max_calib_range', or 'enable_float_output', found neither");
  ok(try_layer(DENSE, ATTRS("quantized", "True"), dense())); /* as int32 */
}

static cohort_symbol *attention(const char *op, cohort_symbol *projections) {
  return node(op, "a", ATTRS("heads", "2"), INPUTS(projections));
}

#define SCORES "_sg_mkldnn_selfatt_qk"
#define INTERLEAVED "_contrib_interleaved_matmul_selfatt_qk"

static void what_is_no_such_attention_is_refused(void **state) {
  (void)state;
  ok(try_layer(SCORES, ATTRS("heads", "2"), attention(INTERLEAVED, variable("x"))));
  ok(try_layer(SCORES, ATTRS("heads", "2", "quantized", "True"), attention(INTERLEAVED, variable("x"))));
  fails(try_layer(SCORES, NO_ATTRS, attention(INTERLEAVED, variable("x"))), COHORT_ERROR_NAME, "heads");
  REFUSED(SCORES, ATTRS("heads", "0"), attention(INTERLEAVED, variable("x")), "heads");
  REFUSED(SCORES, ATTRS("heads", "3"), attention(INTERLEAVED, variable("x")), "expected 'heads' of 3, found 2");
  REFUSED(SCORES, ATTRS("heads", "2"), NULL, "expected 1 sub-graphs, found 0");
  REFUSED(SCORES, ATTRS("heads", "2"), dense(), "expected a _contrib_interleaved_matmul_selfatt_qk before it");
  REFUSED("_sg_mkldnn_selfatt_valatt", ATTRS("heads", "2"), attention(INTERLEAVED, variable("x")),
          "expected a _contrib_interleaved_matmul_selfatt_valatt before it");
  REFUSED(SCORES, ATTRS("heads", "2"), node("square", "s", NO_ATTRS, INPUTS(attention(INTERLEAVED, variable("x")))),
          "node 's' (square): expected an operator that is fused with _contrib_interleaved_matmul_selfatt_qk");
}

/* Without a range of its own the product is int32, with the bounds that follow from its inputs. */
static void scores_in_int32_have_the_bounds_of_a_product(void **state) {
  cohort_symbol *bytes = node("_contrib_quantize_v2", "bytes",
                              ATTRS("out_type", "int8", "min_calib_range", "-127.5", "max_calib_range", "127.5"),
                              INPUTS(variable("data"))),
                *inside = attention(INTERLEAVED, variable("x")), *quantized[4] = {inside}, *scores;
  const char *const keys[] = {"heads", "quantized"}, *const values[] = {"2", "True"};
  const float bound = (127.5f / 127) * (127.5f / 127) * 2147483647.0f;
  cohort_executor *executor;
  cohort_ndarray *found;
  int32_t numbers[8];
  size_t i;

  (void)state;
  for (i = 0; i < 3; ++i) ok(cohort_symbol_output(bytes, i, &quantized[1 + i]));
  ok(cohort_symbol_create(SCORES, "layer", keys, values, 2, quantized, NULL, 4, &scores));
  for (i = 0; i < 4; ++i) cohort_symbol_free(quantized[i]);
  cohort_symbol_free(bytes);
  executor = simple_bind_with(scores, desc("data", SHAPE(2, 1, 6), NULL), "null");
  set_arg(executor, "data", 2, 5, 0, -7, 11, 0, -4, 100, 0, 1, 127, 0); /* (query, key, value) of each head */
  ok(cohort_executor_forward(executor, 0));
  found = output_of(executor, 0);
  assert_int_equal(dtype_of(found), COHORT_DTYPE_INT32);
  ok(cohort_ndarray_read(found, numbers, sizeof numbers));
  cohort_ndarray_free(found);
  assert_memory_equal(numbers, ((int32_t[]){10, 200, -20, -400, -77, -889, 11, 127}), sizeof numbers);
  holds_free(output_of(executor, 1), -bound);
  holds_free(output_of(executor, 2), bound);
  cohort_executor_free(executor);
}

/* A node in a file that lacks the bounds of its int8 data. */
static void a_file_without_bounds_is_refused(void **state) {
  cohort_symbol *layer = node(DENSE, "layer", ATTRS("quantized", "False"),
                              INPUTS(dense(), variable("data"), variable("weight"))),
                *found = NULL;
  const char *json = NULL, *place;
  char bad[4096];

  (void)state;
  ok(cohort_symbol_to_json(layer, &json));
  place = strstr(json, "\"quantized\": \"False\"");
  assert_non_null(place);
  snprintf(bad, sizeof bad, "%.*s\"quantized\": \"True\"%s", (int)(place - json), json,
           place + strlen("\"quantized\": \"False\""));
  fails(cohort_symbol_from_json(bad, strlen(bad), &found), COHORT_ERROR_FORMAT, "expected 6 inputs, found 2");
  assert_null(found);
  cohort_symbol_free(layer);
}

/* int8 data come out as int8. */
static void floats_are_no_bytes(void **state) {
  cohort_symbol *layer = node(DENSE, "layer", ATTRS("quantized", "True", "enable_float_output", "True"),
                              INPUTS(dense(), variable("data"), variable("weight"), variable("a"), variable("b"),
                                     variable("c"), variable("d")));
  cohort_executor *executor = NULL;
  cohort_descs *descs = desc("data", SHAPE(1, 2), NULL);

  (void)state;
  fails(cohort_executor_simple_bind(layer, NULL, descs, NULL, &executor), COHORT_ERROR_DTYPE,
        "expected int8, uint8 or int32, found float32");
  assert_null(executor);
  cohort_descs_free(descs);
  cohort_symbol_free(layer);
}

/* The gradient of a norm's beta is the sum of the head gradient where relu passes it, and nothing else. */
static void sums_of_what_relu_lets_through_lose_nothing(void **state) {
  int64_t length;

  (void)state;
  for (length = 2; length < 80; ++length) {
    cohort_symbol *norm = node("BatchNorm", "norm", NO_ATTRS, INPUTS(variable("x")));
    cohort_executor *executor = simple_bind_with(node("Activation", "relu", ATTRS("act_type", "relu"), INPUTS(norm)),
                                                 desc("x", SHAPE(1, 1, 1, length), NULL), "write");
    cohort_ndarray *x = arg_of(executor, "x"), *head = counted(SHAPE(1, 1, 1, length), 0);
    float values[80], outputs[80];
    double expected = 0;
    int64_t i;

    for (i = 0; i < length; ++i) values[i] = (float)((i * 7 + length) % 11) - 5.3f;
    ok(cohort_ndarray_write(x, values, (size_t)length * sizeof(float)));
    cohort_ndarray_free(x);
    ok(cohort_executor_forward(executor, 1));
    x = output_of(executor, 0);
    ok(cohort_ndarray_read(x, outputs, (size_t)length * sizeof(float)));
    cohort_ndarray_free(x);
    for (i = 0; i < length; ++i) {
      values[i] = outputs[i] > 0 ? (float)(1 + i % 5) : INFINITY;
      if (outputs[i] > 0) expected += values[i];
    }
    ok(cohort_ndarray_write(head, values, (size_t)length * sizeof(float)));
    ok(cohort_executor_backward(executor, &head, 1, 1));
    cohort_ndarray_free(head);
    head = grad_of(executor, "norm_beta");
    holds(head, (float)expected);
    cohort_ndarray_free(head);
    cohort_executor_free(executor);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(statistics_stay_in_training),
      TEST(derived_weights_follow_the_weights),
      TEST(a_file_keeps_the_layer),
      TEST(what_is_no_such_layer_is_refused),
      TEST(what_is_no_such_attention_is_refused),
      TEST(scores_in_int32_have_the_bounds_of_a_product),
      TEST(a_file_without_bounds_is_refused),
      TEST(floats_are_no_bytes),
      TEST(sums_of_what_relu_lets_through_lose_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
