// SPDX-License-Identifier: Apache-2.0
// What the forward and the backward pass of RNN share: sizes, where parameters lie and where a pass keeps its values.
//
// The equations, with x W = x Wx^T + bx, h U = h Wh^T + bh and the gates in MXNet's order:
//   vanilla: h' = act(x W + h U)
//   lstm:    i, f, g, o = x W + h U; c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c')
//   gru:     r, z = sigmoid(x W + h U); n = tanh(x Wn + r (h Un)); h' = (1 - z) n + z h
// Where a sequence has ended (sequence_length), the state stays and the output is 0.
#pragma once

#include <cstddef>
#include <vector>

#include "op/rnn.hpp"

namespace cohort::rnn {

struct Sizes {
  int64_t time, batch, inputs, state, out, gates;  // out: of one direction's hidden state; gates: gates * state
  int layers, directions;
  RNNAttrs::Mode mode;
  bool projects;

  int64_t rows() const { return time * batch; }
  int64_t layer_inputs(int layer) const { return layer == 0 ? inputs : out * directions; }
  int64_t width() const { return out * directions; }
};

Sizes sizes_of(const RNNAttrs &a, const Shape &data);

// Where the parameters of a layer and direction lie in the packed vector, in elements.
struct Parameters {
  int64_t input_weight, state_weight, input_bias, state_bias, projection;
};

Parameters parameters_of(const Sizes &s, int layer, int direction);

// Places, in bytes, of what the forward pass keeps for each cell (a layer and direction) and for each layer.
struct Store {
  struct Cell {
    size_t gates;   // (time, batch, gates): after their activations
    size_t hidden;  // (time, batch, out): h'
    size_t cell;    // (time, batch, state): lstm's c'
    size_t linear;  // (time, batch, state): gru's h Un
    size_t whole;   // (time, batch, state): with a projection, h' before it
  };
  std::vector<Cell> cells;
  std::vector<size_t> inputs;  // of layers 1 and up: (time, batch, directions * out)
  std::vector<size_t> masks;   // the same as bytes, with dropout
};

// A pass that keeps nothing reuses the places of a cell for the next.
Store store_of(const Sizes &s, bool keeps, bool drops, size_t element, size_t *bytes);

// Which sequences of a batch have ended before step t.
struct Ended {
  const double *lengths;  // null: none
  int64_t t;
  COHORT_HOST_DEVICE bool operator()(int64_t n) const { return lengths && double(t) >= lengths[n]; }
};

}  // namespace cohort::rnn
