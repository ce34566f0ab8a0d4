/* SPDX-License-Identifier: Apache-2.0 */
#include "lstm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { MAX_LENGTH = 1024 };

static const char *const fused_states[] = {"lstm_state", "lstm_state_cell"};
static const char *const unrolled_states[] = {"l0_h", "l0_c", "l1_h", "l1_c", "l2_h", "l2_c", "l3_h", "l3_c",
                                              "l4_h", "l4_c", "l5_h", "l5_c", "l6_h", "l6_c", "l7_h", "l7_c"};

static const char *text_of(char *text, long value) {
  sprintf(text, "%ld", value);
  return text;
}

static cohort_symbol *variable(const char *name, const char *key, const char *value) {
  cohort_symbol *symbol;

  OK(cohort_symbol_variable(name, &key, &value, key ? 1 : 0, &symbol));
  return symbol;
}

static cohort_symbol *share_of(const cohort_symbol *symbol, size_t output) {
  cohort_symbol *share;

  OK(cohort_symbol_output(symbol, output, &share));
  return share;
}

/* Two inputs, whose handles it takes. */
static cohort_symbol *pair(const char *op, cohort_symbol *left, cohort_symbol *right) {
  cohort_symbol *inputs[2], *output;

  inputs[0] = left;
  inputs[1] = right;
  OK(cohort_symbol_create(op, NULL, NULL, NULL, 0, inputs, NULL, 2, &output));
  cohort_symbol_free(left);
  cohort_symbol_free(right);
  return output;
}

/* ---- one operator for everything
 * ----------------------------------------------------------------------------------- */

/* (batch, length, inputs) -> (batch, length, hidden). */
static cohort_symbol *fused_layers(const lstm_settings *s, cohort_symbol *sequence, cohort_symbol **out_states) {
  const char *keys[] = {"mode", "state_size", "num_layers", "state_outputs"};
  char hidden[24], layers[24];
  const char *values[] = {"lstm", text_of(hidden, s->hidden), text_of(layers, s->layers), "1"};
  cohort_symbol *inputs[4], *all, *result;
  size_t i;

  inputs[0] = layer("SwapAxis", NULL, sequence, "dim1", "0", "dim2", "1", NULL); /* RNN has time first */
  inputs[1] = variable("lstm_parameters", "__init__", "[\"uniform\", {\"scale\": 0.08}]");
  inputs[2] = variable(fused_states[0], NULL, NULL);
  inputs[3] = variable(fused_states[1], NULL, NULL);
  OK(cohort_symbol_create("RNN", "lstm", keys, values, 4, inputs, NULL, 4, &all));
  for (i = 0; i < 4; ++i) cohort_symbol_free(inputs[i]);
  for (i = 0; i < 2; ++i) {
    out_states[i] = layer("BlockGrad", i == 0 ? "last_h" : "last_c", share_of(all, i + 1), "__layout__", "LNC", NULL);
  }
  result = layer("SwapAxis", NULL, share_of(all, 0), "dim1", "0", "dim2", "1", NULL);
  cohort_symbol_free(all);
  return result;
}

/* ---- step by step ------------------------------------------------------------------------------------------------ */

/* One step: `in` is the input's contribution to the gates, (batch, 4 * hidden). Takes all handles, returns new ones. */
static void step(const lstm_settings *s, cohort_symbol *in, const cohort_symbol *weight, const cohort_symbol *bias,
                 cohort_symbol **h, cohort_symbol **c) {
  const char *key = "num_hidden";
  char rows[24];
  const char *value = text_of(rows, 4 * s->hidden);
  cohort_symbol *inputs[3], *recurrent, *parts, *gate[4];
  size_t i;

  inputs[0] = *h;
  OK(cohort_symbol_output(weight, 0, &inputs[1]));
  OK(cohort_symbol_output(bias, 0, &inputs[2]));
  OK(cohort_symbol_create("FullyConnected", NULL, &key, &value, 1, inputs, NULL, 3, &recurrent));
  for (i = 0; i < 3; ++i) cohort_symbol_free(inputs[i]);
  parts = layer("SliceChannel", NULL, pair("elemwise_add", in, recurrent), "num_outputs", "4", NULL);
  for (i = 0; i < 4; ++i) /* in, forget, new, out: MXNet's order */
    gate[i] = layer("Activation", NULL, share_of(parts, i), "act_type", i == 2 ? "tanh" : "sigmoid", NULL);
  cohort_symbol_free(parts);
  *c = pair("elemwise_add", pair("elemwise_mul", gate[1], *c), pair("elemwise_mul", gate[0], gate[2]));
  *h = pair("elemwise_mul", gate[3], layer("Activation", NULL, share_of(*c, 0), "act_type", "tanh", NULL));
}

/* The inputs' contribution to the gates does not depend on the steps: one product for all of them. */
static cohort_symbol *input_gates(const lstm_settings *s, long index, cohort_symbol *sequence) {
  char name[24], rows[24];

  sprintf(name, "l%ld_i2h", index);
  return layer("FullyConnected", name, sequence, "num_hidden", text_of(rows, 4 * s->hidden), "flatten", "0", NULL);
}

/* (batch, length, inputs) -> (batch, length, hidden). Takes the sequence. */
static cohort_symbol *unrolled_layer(const lstm_settings *s, long length, long index, cohort_symbol *sequence,
                                     cohort_symbol **out_states) {
  char name[24], shape[48], steps[24];
  cohort_symbol *weight, *bias, *h, *c, *inputs, *result, *outputs[MAX_LENGTH];
  const char *key = "axis", *value = "1";
  long t;

  sprintf(name, "l%ld_h2h_weight", index);
  weight = variable(name, NULL, NULL);
  sprintf(name, "l%ld_h2h_bias", index);
  bias = variable(name, NULL, NULL);
  sprintf(shape, "(0, %ld)", s->hidden); /* 0: the batch size, whatever it is */
  h = variable(unrolled_states[2 * index], "__shape__", shape);
  c = variable(unrolled_states[2 * index + 1], "__shape__", shape);
  inputs = layer("SliceChannel", NULL, input_gates(s, index, sequence), "num_outputs", text_of(steps, length), "axis",
                 "1", "squeeze_axis", "1", NULL);
  for (t = 0; t < length; ++t) {
    step(s, share_of(inputs, (size_t)t), weight, bias, &h, &c);
    outputs[t] = share_of(h, 0);
  }
  OK(cohort_symbol_create("stack", NULL, &key, &value, 1, outputs, NULL, (size_t)length, &result));
  for (t = 0; t < length; ++t) cohort_symbol_free(outputs[t]);
  cohort_symbol_free(inputs);
  cohort_symbol_free(weight);
  cohort_symbol_free(bias);
  sprintf(name, "l%ld_last_h", index);
  out_states[0] = layer("BlockGrad", name, h, NULL);
  sprintf(name, "l%ld_last_c", index);
  out_states[1] = layer("BlockGrad", name, c, NULL);
  return result;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

/* (batch, length) -> (batch, length, hidden). */
static cohort_symbol *embedding(const lstm_settings *s) {
  const char *const keys[] = {"input_dim", "output_dim"};
  char rows[24], columns[24];
  const char *const values[] = {text_of(rows, s->vocabulary), text_of(columns, s->hidden)};
  cohort_symbol *inputs[2], *result;

  inputs[0] = variable("data", NULL, NULL);
  inputs[1] =
      variable("embed_weight", "__init__", "[\"normal\", {\"sigma\": 0.5}]"); /* so that rows differ from the start */
  OK(cohort_symbol_create("Embedding", "embed", keys, values, 2, inputs, NULL, 2, &result));
  cohort_symbol_free(inputs[0]);
  cohort_symbol_free(inputs[1]);
  return result;
}

cohort_symbol *lstm_language_model(const lstm_settings *s, long length) {
  cohort_symbol *outputs[1 + LSTM_MAX_STATES], *net, *label, *all;
  const char *const keys[] = {"use_ignore", "ignore_label"}, *const values[] = {"1", "0"};
  char rows[24], width[24];
  const size_t num_states = s->unrolled ? 2 * (size_t)s->layers : 2;
  size_t i;

  if (length < 1 || length > MAX_LENGTH) fail("sequences may be 1 to %d long, found %ld", MAX_LENGTH, length);
  if (s->layers < 1 || s->layers > LSTM_MAX_LAYERS) fail("there may be 1 to %d layers", LSTM_MAX_LAYERS);
  net = embedding(s);
  if (s->unrolled) {
    for (i = 0; i < (size_t)s->layers; ++i) net = unrolled_layer(s, length, (long)i, net, &outputs[1 + 2 * i]);
  } else {
    net = fused_layers(s, net, &outputs[1]);
  }
  sprintf(width, "(-1, %ld)", s->hidden);
  net = layer("Reshape", NULL, net, "shape", width, NULL);
  net = layer("FullyConnected", "scores", net, "num_hidden", text_of(rows, s->vocabulary), NULL);
  label = layer("Reshape", NULL, variable("softmax_label", NULL, NULL), "shape", "(-1,)", NULL);
  {
    cohort_symbol *inputs[2];

    inputs[0] = net;
    inputs[1] = label;
    OK(cohort_symbol_create("SoftmaxOutput", "softmax", keys, values, 2, inputs, NULL, 2, &outputs[0]));
  }
  cohort_symbol_free(net);
  cohort_symbol_free(label);
  OK(cohort_symbol_group(outputs, s->state_outputs ? 1 + num_states : 1, &all));
  for (i = 0; i < 1 + num_states; ++i) cohort_symbol_free(outputs[i]);
  return all;
}

size_t lstm_state_names(const lstm_settings *s, const char *names[LSTM_MAX_STATES]) {
  const size_t num = s->unrolled ? 2 * (size_t)s->layers : 2;

  memcpy(names, s->unrolled ? unrolled_states : fused_states, num * sizeof *names);
  return num;
}

size_t lstm_param_names(const cohort_symbol *symbol, const char **names, size_t capacity) {
  static const char *const ends[] = {"_weight", "_bias", "_parameters"};
  size_t num_arguments, num = 0, i, k;

  OK(cohort_symbol_num_names(symbol, COHORT_SYMBOL_ARGUMENTS, &num_arguments));
  for (i = 0; i < num_arguments; ++i) {
    const char *name;

    OK(cohort_symbol_name_at(symbol, COHORT_SYMBOL_ARGUMENTS, i, &name));
    for (k = 0; k < sizeof ends / sizeof *ends; ++k) {
      const size_t length = strlen(name), end = strlen(ends[k]);

      if (length < end || strcmp(name + length - end, ends[k]) != 0) continue;
      if (num == capacity) fail("there are more than %lu parameters", (unsigned long)capacity);
      names[num++] = name;
    }
  }
  return num;
}
