// SPDX-License-Identifier: Apache-2.0
// Common code of the forward and backward kernels of RNN: sizes, the layout of the packed parameters, and of the
// values that the forward pass keeps.
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

struct RnnSizes {
  int64_t time, batch, inputs, state, out,
      gates;  // out: width of one direction's hidden state; gates: number of gates * state
  int layers, directions;
  RNNAttrs::Mode mode;
  bool projects;

  int64_t rows() const { return time * batch; }
  int64_t layer_inputs(int layer) const { return layer == 0 ? inputs : out * directions; }
  int64_t width() const { return out * directions; }
};

RnnSizes sizes_of(const RNNAttrs &a, const Shape &data);

// The offsets, in elements, of the parameters of one layer and direction in the packed vector.
struct CellParameters {
  int64_t input_weight, state_weight, input_bias, state_bias, projection;
};

CellParameters parameters_of(const RnnSizes &s, int layer, int direction);

// The offsets, in bytes, of the values that the forward pass keeps for each cell (a layer and direction) and for each
// layer.
struct Store {
  struct Cell {
    size_t gates;   // (time, batch, gates): after the activations
    size_t hidden;  // (time, batch, out): h'
    size_t cell;    // (time, batch, state): c' of lstm
    size_t linear;  // (time, batch, state): h Un of gru
    size_t whole;   // (time, batch, state): h' before the projection, if there is one
  };
  std::vector<Cell> cells;
  std::vector<size_t> inputs;  // of layers 1 and up: (time, batch, directions * out)
  std::vector<size_t> masks;   // dropout masks: the same shape, in bytes
};

// Lays out the kept values. Without `keeps`, all cells use the same memory in turn.
Store store_of(const RnnSizes &s, bool keeps, bool drops, size_t element, size_t *bytes);

// Whether sequence n of a batch has ended before step t.
struct Ended {
  const double *lengths;  // null: no sequence ends early
  int64_t t;
  COHORT_HOST_DEVICE bool operator()(int64_t n) const { return lengths && double(t) >= lengths[n]; }
};

}  // namespace cohort::rnn
