// SPDX-License-Identifier: Apache-2.0
// As MXNet's LSTMCell.unroll() makes it, parameters named lstm_l0_i2h_weight and so on.
#include "lstm_symbol.hpp"

#include <string>
#include <vector>

#include "workload.hpp"

namespace bench {
namespace {

using cohort::Attrs;
using cohort::Symbol;

Symbol variable(const std::string &name) { return Symbol::variable(name); }

Symbol apply(const char *op, const std::string &name, const Attrs &attrs, const std::vector<const Symbol *> &inputs) {
  std::vector<Symbol> from;
  for (const Symbol *input : inputs) from.push_back(*input);
  return Symbol::create(op, name, attrs, from);
}

Symbol output(const Symbol &of, size_t index) { return of.output(index); }

struct Cell {
  Symbol i2h_weight, i2h_bias, h2h_weight, h2h_bias, hidden, memory;
  std::string prefix;

  explicit Cell(int64_t layer) : prefix("lstm_l" + std::to_string(layer) + "_") {
    i2h_weight = variable(prefix + "i2h_weight");
    i2h_bias = variable(prefix + "i2h_bias");
    h2h_weight = variable(prefix + "h2h_weight");
    h2h_bias = variable(prefix + "h2h_bias");
    const Attrs state = {{"shape", "(0, " + std::to_string(kHidden) + ")"}};
    hidden = apply("_zeros", prefix + "begin_state_0", state, {});
    memory = apply("_zeros", prefix + "begin_state_1", state, {});
  }

  void step(int64_t t, const Symbol &input) {
    const std::string at = prefix + "t" + std::to_string(t) + "_";
    const Attrs wide = {{"num_hidden", std::to_string(4 * kHidden)}};
    const Symbol i2h = apply("FullyConnected", at + "i2h", wide, {&input, &i2h_weight, &i2h_bias});
    const Symbol h2h = apply("FullyConnected", at + "h2h", wide, {&hidden, &h2h_weight, &h2h_bias});
    const Symbol sum = apply("elemwise_add", at + "plus", {}, {&i2h, &h2h});
    const Symbol gates = apply("SliceChannel", at + "slice", {{"num_outputs", "4"}}, {&sum});
    const auto gate = [&](size_t index, const char *name, const char *function) {
      const Symbol from = output(gates, index);
      return apply("Activation", at + name, {{"act_type", function}}, {&from});
    };
    const Symbol in = gate(0, "i", "sigmoid"), forget = gate(1, "f", "sigmoid"), change = gate(2, "c", "tanh"),
                 out = gate(3, "o", "sigmoid");
    const Symbol kept = apply("elemwise_mul", at + "kept", {}, {&forget, &memory});
    const Symbol added = apply("elemwise_mul", at + "added", {}, {&in, &change});
    memory = apply("elemwise_add", at + "state", {}, {&kept, &added});
    const Symbol shown = apply("Activation", at + "shown", {{"act_type", "tanh"}}, {&memory});
    hidden = apply("elemwise_mul", at + "out", {}, {&out, &shown});
  }
};

}  // namespace

Symbol unrolled_lstm(int64_t length) {
  const std::string hidden = std::to_string(kHidden), words = std::to_string(kWords);
  const Symbol data = variable("data"), weight = variable("embed_weight");
  const Symbol embedded = apply("Embedding", "embed", {{"input_dim", words}, {"output_dim", hidden}}, {&data, &weight});
  const Symbol inputs =
      apply("SliceChannel", "inputs", {{"axis", "1"}, {"num_outputs", std::to_string(length)}, {"squeeze_axis", "1"}},
            {&embedded});
  std::vector<Cell> cells;
  for (int64_t layer = 0; layer < kLayers; ++layer) cells.emplace_back(layer);
  std::vector<Symbol> outs;
  for (int64_t t = 0; t < length; ++t) {
    const Symbol first = length > 1 ? output(inputs, size_t(t)) : output(inputs, 0);
    const Symbol *input = &first;
    for (Cell &cell : cells) {
      cell.step(t, *input);
      input = &cell.hidden;
    }
    outs.push_back(apply("expand_dims", "out" + std::to_string(t), {{"axis", "1"}}, {input}));
  }
  std::vector<const Symbol *> all;
  for (const Symbol &out : outs) all.push_back(&out);
  const Symbol joined = apply("Concat", "outs", {{"dim", "1"}, {"num_args", std::to_string(length)}}, all);
  const Symbol rows = apply("Reshape", "rows", {{"shape", "(-1, " + hidden + ")"}}, {&joined});
  const Symbol pred_weight = variable("pred_weight"), pred_bias = variable("pred_bias");
  const Symbol pred = apply("FullyConnected", "pred", {{"num_hidden", words}}, {&rows, &pred_weight, &pred_bias});
  const Symbol label = variable("softmax_label");
  const Symbol label_rows = apply("Reshape", "label_rows", {{"shape", "(-1,)"}}, {&label});
  return apply("SoftmaxOutput", "softmax", {}, {&pred, &label_rows});
}

}  // namespace bench
