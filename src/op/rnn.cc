// SPDX-License-Identifier: Apache-2.0
#include "op/rnn.hpp"

#include <algorithm>

namespace cohort {

int64_t rnn_parameter_size(const RNNAttrs &a, int64_t input_size) {
  const int64_t rows = int64_t(a.gates()) * a.state_size, recurrent = a.output_size(), d = a.directions();
  int64_t size = (input_size + recurrent + 2) * rows * d;
  size += (recurrent * d + recurrent + 2) * rows * d * (a.num_layers - 1);
  if (a.projection_size) size += recurrent * a.state_size * a.num_layers * d;
  return size;
}

namespace {

constexpr int32_t kMost = 1 << 18;  // keeps the number of parameters within 64 bits

void check(RNNAttrs &a) {
  if (a.projection_size && a.mode != RNNAttrs::kLstm) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'projection_size': expected only with mode lstm, found ", *a.projection_size,
                     " with another mode"),
                "projection_size");
  }
  if (a.lstm_state_clip_min.has_value() != a.lstm_state_clip_max.has_value()) {
    throw Error(Code::kInvalidArgument,
                "attributes 'lstm_state_clip_min' and 'lstm_state_clip_max': expected both or neither, found one",
                "lstm_state_clip_min");
  }
}

void infer_shape(const RNNAttrs &a, Shapes &in, Shapes &out) {
  Shape &data = in[0], &state = in[2];
  const int64_t stacked = int64_t(a.num_layers) * a.directions(), width = int64_t(a.output_size()) * a.directions();
  unify(data, Shape::of_rank(3), "data");
  unify(out[0], Shape{data[0], data[1], width}, "output");
  unify(state, Shape{stacked, out[0][1], a.output_size()}, "state");
  if (data[0] == Shape::kUnknown) data[0] = out[0][0];
  const bool lstm = a.mode == RNNAttrs::kLstm;
  if (lstm) unify(in[3], Shape{stacked, state[1], a.state_size}, "state_cell");
  if (a.state_outputs) {
    unify(out[1], Shape{stacked, lstm ? in[3][1] : state[1], a.output_size()}, "state_output");
    if (lstm) unify(out[2], Shape{stacked, out[1][1], a.state_size}, "statecell_output");
  }
  int64_t batch = a.state_outputs ? (lstm ? out[2][1] : out[1][1]) : lstm ? in[3][1] : state[1];
  if (a.use_sequence_length) {
    unify(in.back(), Shape{batch}, "sequence_length");
    batch = in.back()[0];
  }
  // The batch size is known by now if any array determines it; set it for all.
  data[1] = out[0][1] = state[1] = batch;
  if (lstm) in[3][1] = batch;
  if (a.state_outputs) out[1][1] = batch;
  if (a.state_outputs && lstm) out[2][1] = batch;
  unify(in[1], Shape{data[2] == Shape::kUnknown ? Shape::kUnknown : rnn_parameter_size(a, data[2])}, "parameters");
}

void infer_dtype(const RNNAttrs &a, Dtypes &in, Dtypes &out) {
  Dtypes floats(in.begin(), in.end() - (a.use_sequence_length ? 1 : 0));
  infer_same_dtype(Attrs(), floats, out);
  std::copy(floats.begin(), floats.end(), in.begin());
}

COHORT_OPERATOR(RNN, RNNAttrs)
    .alias("_npx_rnn")
    .doc("Recurrent layers (vanilla, lstm, gru) over a sequence.")
    .required(&RNNAttrs::state_size, "state_size", "Size of the state of each layer.")
    .range(1, kMost)
    .shown_as("int (non-negative)")
    .required(&RNNAttrs::num_layers, "num_layers", "Number of stacked layers.")
    .range(1, 4096)
    .shown_as("int (non-negative)")
    .attr(&RNNAttrs::bidirectional, "bidirectional", false, "Whether the sequence is read in both directions.")
    .required_choice(&RNNAttrs::mode, "mode",
                     {{"gru", RNNAttrs::kGru},
                      {"lstm", RNNAttrs::kLstm},
                      {"rnn_relu", RNNAttrs::kRnnRelu},
                      {"rnn_tanh", RNNAttrs::kRnnTanh}},
                     "The kind of cell.")
    .attr(&RNNAttrs::p, "p", 0.0f, "Probability of dropout between layers, in training.")
    .range(0.0f, 1.0f)
    .attr(&RNNAttrs::state_outputs, "state_outputs", false, "Whether the last states are outputs.")
    .attr(&RNNAttrs::projection_size, "projection_size", std::nullopt, "Size to which lstm projects its state.")
    .range(1, kMost)
    .attr(&RNNAttrs::lstm_state_clip_min, "lstm_state_clip_min", std::nullopt, "Lower bound of lstm's cell state.")
    .attr(&RNNAttrs::lstm_state_clip_max, "lstm_state_clip_max", std::nullopt, "Upper bound of lstm's cell state.")
    .attr(&RNNAttrs::lstm_state_clip_nan, "lstm_state_clip_nan", false, "Whether clipping also replaces NaN.")
    .attr(&RNNAttrs::use_sequence_length, "use_sequence_length", false, "Whether there is an input sequence_length.")
    .check(check)
    .input("data", "(time, batch, inputs).")
    .input("parameters", "All weights and biases in one vector.")
    .input("state", "Initial state, (layers * directions, batch, state_size).")
    .input_if(
        "state_cell", [](const RNNAttrs &a) { return a.mode == RNNAttrs::kLstm; }, "Initial cell state of lstm.")
    .input_if(
        "sequence_length", [](const RNNAttrs &a) { return a.use_sequence_length; }, "Length of each sequence.")
    .outputs([](const RNNAttrs &a) { return !a.state_outputs            ? 1
                                            : a.mode == RNNAttrs::kLstm ? 3
                                                                        : 2; })
    .output_names([](const RNNAttrs &a) {
      std::vector<std::string> names{"output"};
      if (a.state_outputs) names.push_back("state_output");
      if (a.state_outputs && a.mode == RNNAttrs::kLstm) names.push_back("statecell_output");
      return names;
    })
    .infer_shape(infer_shape)
    .infer_dtype(infer_dtype)
    .flops([](const RNNAttrs &, const Shapes &in, const Shapes &) {
      return 2 * double(in[0].size(0, 2)) * double(in[1].size());
    })
    .gradient([](const RNNAttrs &a) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      g.of = a.mode == RNNAttrs::kLstm ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 1, 2};
      g.inputs = g.of;
      if (a.use_sequence_length) g.inputs.push_back(int(g.of.size()));
      g.outputs = {0};
      g.with_forward = true;
      return g;
    })
    .random()
    .narrow();

}  // namespace
}  // namespace cohort
