// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over a whole sequence, several in a stack, in one or both directions. Gate order: lstm i, f, c, o;
// gru r, z, n. Parameters: for each layer and direction the input weights (gates * state_size, inputs), then the
// recurrent weights (gates * state_size, state_size); after all weights, for each layer and direction the input biases,
// then the recurrent biases; after these, with projection_size, the projection weights.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data (time, batch, inputs), parameters, state (layers * directions, batch, state_size), state_cell (lstm only,
// same), sequence_length (use_sequence_length only, (batch,)). Outputs (time, batch, directions * state_size) and, with
// state_outputs, the last state and (lstm) the last state_cell. The backward kernel gets the head gradients of these
// outputs, then data, parameters, state, state_cell, sequence_length as far as present, then output 0, and what the
// forward kernel saved; it gives the gradients of data, parameters, state, state_cell.
struct RNNAttrs {
  enum Mode : int32_t { kGru, kLstm, kRnnRelu, kRnnTanh };
  int32_t state_size, num_layers;
  bool bidirectional;
  Mode mode;
  float p;  // dropout between layers, in training
  bool state_outputs;
  std::optional<int32_t> projection_size;  // lstm: the state is projected to so many elements
  std::optional<double> lstm_state_clip_min, lstm_state_clip_max;
  bool lstm_state_clip_nan;
  bool use_sequence_length;

  int directions() const { return bidirectional ? 2 : 1; }
  int gates() const { return mode == kLstm ? 4 : mode == kGru ? 3 : 1; }
  int output_size() const { return projection_size ? *projection_size : state_size; }  // of one direction
};

// The number of elements of `parameters`.
int64_t rnn_parameter_size(const RNNAttrs &a, int64_t input_size);

}  // namespace cohort
