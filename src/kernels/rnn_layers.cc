// SPDX-License-Identifier: Apache-2.0
#include "kernels/rnn_layers.hpp"

#include "kernels/scratch_layout.hpp"

namespace cohort::rnn {

RnnSizes sizes_of(const RNNAttrs &a, const Shape &data) {
  RnnSizes s;
  s.time = data[0];
  s.batch = data[1];
  s.inputs = data[2];
  s.state = a.state_size;
  s.out = a.output_size();
  s.gates = int64_t(a.gates()) * a.state_size;
  s.layers = a.num_layers;
  s.directions = a.directions();
  s.mode = a.mode;
  s.projects = a.projection_size.has_value();
  return s;
}

CellParameters parameters_of(const RnnSizes &s, int layer, int direction) {
  CellParameters p;
  int64_t at = 0;
  for (int l = 0; l < s.layers; ++l) {
    for (int d = 0; d < s.directions; ++d) {
      const int64_t input_weights = s.gates * s.layer_inputs(l), state_weights = s.gates * s.out;
      if (l == layer && d == direction) {
        p.input_weight = at;
        p.state_weight = at + input_weights;
        p.projection = p.state_weight + state_weights;
      }
      at += input_weights + state_weights + (s.projects ? s.out * s.state : 0);
    }
  }
  p.input_bias = at + (int64_t(layer) * s.directions + direction) * 2 * s.gates;
  p.state_bias = p.input_bias + s.gates;
  return p;
}

Store store_of(const RnnSizes &s, bool keeps, bool drops, size_t element, size_t *bytes) {
  Store store;
  const size_t rows = size_t(s.rows());
  Store::Cell cell{};
  for (int l = 0; l < s.layers; ++l) {
    for (int d = 0; d < s.directions; ++d) {
      if (keeps || (l == 0 && d == 0)) {
        cell.gates = book(*bytes, rows * size_t(s.gates) * element);
        cell.hidden = book(*bytes, rows * size_t(s.out) * element);
        if (s.mode == RNNAttrs::kLstm) cell.cell = book(*bytes, rows * size_t(s.state) * element);
        if (s.mode == RNNAttrs::kGru) cell.linear = book(*bytes, rows * size_t(s.state) * element);
        if (s.projects) cell.whole = book(*bytes, rows * size_t(s.state) * element);
      }
      store.cells.push_back(cell);
    }
    const bool fresh = keeps || l <= 2;  // without `keeps`, layers 1 and 2 alternate
    const size_t count = l == 0 ? 0 : rows * size_t(s.width());
    store.inputs.push_back(fresh ? book(*bytes, count * element) : store.inputs[size_t(l - 2)]);
    store.masks.push_back(drops ? book(*bytes, count) : 0);
  }
  return store;
}

}  // namespace cohort::rnn
