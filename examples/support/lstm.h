/* SPDX-License-Identifier: Apache-2.0 */
/* A language model of LSTM layers, composed for sequences of one length: numbers of symbols in, the probabilities of
 * the next symbol out. Parameters have the same names and shapes for every length. */
#ifndef LSTM_H
#define LSTM_H

#include "cohort/cohort.h"

enum { LSTM_MAX_LAYERS = 8, LSTM_MAX_STATES = 2 * LSTM_MAX_LAYERS };

typedef struct lstm_settings {
  int unrolled; /* 0: all layers and steps are one operator, RNN; 1: a step of a layer is a dozen operators */
  long vocabulary, hidden, layers;
  int state_outputs; /* 1: the last states are outputs, in the order of lstm_state_names(), after "softmax_output" */
} lstm_settings;

/*
 * Arguments "data" and "softmax_label", both (batch, length); label 0 is not counted. First states are arguments, too.
 */
cohort_symbol *lstm_language_model(const lstm_settings *settings, long length);

/* The arguments that are initial states; returns how many. */
size_t lstm_state_names(const lstm_settings *settings, const char *names[LSTM_MAX_STATES]);

/* The arguments that are parameters; returns how many. They belong to the symbol. */
size_t lstm_param_names(const cohort_symbol *symbol, const char **names, size_t capacity);

#endif /* LSTM_H */
