// SPDX-License-Identifier: Apache-2.0
// Shape and dtype inference: of single operators, and over graphs in both directions.
#include <fstream>

#include "support/unit.hpp"
#include "symbol/symbol.hpp"

using namespace cohort;

namespace {

constexpr int64_t X = Shape::kUnknown;

Symbol var(const std::string &name, const AttrMap &attrs = {}) { return Symbol::variable(name, attrs); }

Symbol make(const std::string &op, const std::string &name, const AttrMap &attrs, const std::vector<Symbol> &inputs) {
  return Symbol::create(op, attrs, name, {}, inputs);
}

using KnownShapes = std::vector<std::pair<std::string, Shape>>;
using KnownDtypes = std::vector<std::pair<std::string, Dtype>>;

// Shapes of arguments, auxiliary states and outputs, as "x (2, 3) fc_weight (3, 3) -> fc_output (2, 3)".
std::string shapes_of(const Symbol &symbol, const KnownShapes &known) {
  const Graph graph(symbol);
  Inferred inferred;
  infer_shapes(graph, known, &inferred);
  std::string all;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i]->is_variable()) all += text(graph.nodes[i]->name, " ", inferred.shapes[i][0], " ");
  }
  all += "->";
  for (const Graph::Input &head : graph.heads) {
    all += text(" ", inferred.shapes[size_t(head.node)][size_t(head.index)]);
  }
  return all + (inferred.shapes_complete ? "" : " incomplete");
}

std::string dtypes_of(const Symbol &symbol, const KnownDtypes &known) {
  const Graph graph(symbol);
  Inferred inferred;
  infer_dtypes(graph, known, &inferred);
  std::string all;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i]->is_variable()) all += text(graph.nodes[i]->name, " ", inferred.dtypes[i][0], " ");
  }
  all += "->";
  for (const Graph::Input &head : graph.heads) {
    all += text(" ", inferred.dtypes[size_t(head.node)][size_t(head.index)]);
  }
  return all + (inferred.dtypes_complete ? "" : " incomplete");
}

// One operator "n" over a variable "x".
std::string of_op(const std::string &op, const AttrMap &attrs, const Shape &x) {
  return shapes_of(make(op, "n", attrs, {var("x")}), {{"x", x}});
}

std::string reshaped(const std::string &shape, const Shape &x, bool reverse = false) {
  return of_op("Reshape", {{"shape", shape}, {"reverse", reverse ? "1" : "0"}}, x);
}

int shape_error(const std::string &op, const AttrMap &attrs, const Shape &x) {
  try {
    of_op(op, attrs, x);
  } catch (const Error &e) {
    CHECK(std::string(e.what()).find("node 'n' (" + op + "): ") == 0);
    CHECK_EQ(e.subject(), "n");
    return int(e.code());
  }
  return 0;
}

}  // namespace

TEST(a_layer_infers_its_parameters_from_its_data) {
  CHECK_EQ(of_op("FullyConnected", {{"num_hidden", "3"}}, {2, 4, 5}),
           "x (2, 4, 5) n_weight (3, 20) n_bias (3,) -> (2, 3)");
  CHECK_EQ(of_op("FullyConnected", {{"num_hidden", "3"}, {"flatten", "0"}, {"no_bias", "1"}}, {2, 4, 5}),
           "x (2, 4, 5) n_weight (3, 5) -> (2, 4, 3)");
  CHECK_EQ(of_op("Convolution", {{"kernel", "(3, 2)"}, {"num_filter", "8"}, {"stride", "(2, 1)"}, {"num_group", "2"}},
                 {5, 4, 9, 7}),
           "x (5, 4, 9, 7) n_weight (8, 2, 3, 2) n_bias (8,) -> (5, 8, 4, 6)");
  CHECK_EQ(
      of_op("Convolution", {{"kernel", "(3,)"}, {"num_filter", "2"}, {"dilate", "(2,)"}, {"pad", "(1,)"}}, {1, 1, 9}),
      "x (1, 1, 9) n_weight (2, 1, 3) n_bias (2,) -> (1, 2, 7)");
  CHECK_EQ(of_op("Convolution", {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"layout", "NHWC"}, {"no_bias", "True"}},
                 {2, 8, 8, 3}),
           "x (2, 8, 8, 3) n_weight (4, 3, 3, 3) -> (2, 6, 6, 4)");
  CHECK_EQ(of_op("Deconvolution", {{"kernel", "(3, 3)"}, {"num_filter", "2"}, {"stride", "(2, 2)"}, {"adj", "(1, 0)"}},
                 {1, 4, 5, 6}),
           "x (1, 4, 5, 6) n_weight (4, 2, 3, 3) -> (1, 2, 12, 13)");
  CHECK_EQ(of_op("Deconvolution",
                 {{"kernel", "(3, 3)"}, {"num_filter", "2"}, {"stride", "(2, 2)"}, {"target_shape", "(9, 10)"}},
                 {1, 4, 5, 5}),
           "x (1, 4, 5, 5) n_weight (4, 2, 3, 3) -> (1, 2, 9, 10)");
  CHECK_EQ(of_op("BatchNorm", {}, {2, 3, 4}),
           "x (2, 3, 4) n_gamma (3,) n_beta (3,) n_moving_mean (3,) n_moving_var (3,) -> (2, 3, 4)");
  CHECK_EQ(of_op("BatchNorm", {{"axis", "-1"}, {"output_mean_var", "1"}}, {2, 3, 4}),
           "x (2, 3, 4) n_gamma (4,) n_beta (4,) n_moving_mean (4,) n_moving_var (4,) -> (2, 3, 4) (4,) (4,)");
  CHECK_EQ(of_op("LayerNorm", {{"output_mean_var", "1"}}, {2, 3}),
           "x (2, 3) n_gamma (3,) n_beta (3,) -> (2, 3) (2, 1) (2, 1)");
  CHECK_EQ(of_op("Embedding", {{"input_dim", "10"}, {"output_dim", "4"}}, {2, 3}),
           "x (2, 3) n_weight (10, 4) -> (2, 3, 4)");
  CHECK_EQ(of_op("LeakyReLU", {{"act_type", "prelu"}}, {2, 3, 4}), "x (2, 3, 4) n_gamma (3,) -> (2, 3, 4)");
  CHECK_EQ(of_op("LeakyReLU", {}, {2, 3}), "x (2, 3) -> (2, 3)");
}

TEST(pooling_rounds_as_its_convention_says) {
  const AttrMap window{{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}};
  const auto with = [&](AttrMap more) {
    more.insert(window.begin(), window.end());
    return more;
  };
  CHECK_EQ(of_op("Pooling", with({}), {1, 2, 8, 7}), "x (1, 2, 8, 7) -> (1, 2, 3, 3)");
  CHECK_EQ(of_op("Pooling", with({{"pooling_convention", "full"}}), {1, 2, 8, 7}), "x (1, 2, 8, 7) -> (1, 2, 4, 3)");
  CHECK_EQ(of_op("Pooling", with({{"pooling_convention", "same"}}), {1, 2, 8, 7}), "x (1, 2, 8, 7) -> (1, 2, 4, 4)");
  CHECK_EQ(of_op("Pooling", with({{"pad", "(1, 1)"}}), {1, 2, 8, 7}), "x (1, 2, 8, 7) -> (1, 2, 4, 4)");
  CHECK_EQ(of_op("Pooling", {{"global_pool", "True"}}, {1, 2, 8, 7}), "x (1, 2, 8, 7) -> (1, 2, 1, 1)");
  CHECK_EQ(of_op("Pooling", {{"kernel", "(2, 2)"}, {"layout", "NHWC"}}, {1, 8, 7, 2}),
           "x (1, 8, 7, 2) -> (1, 7, 6, 2)");
  // MXNet's first version starts no window behind the padded data.
  const AttrMap sparse{{"kernel", "(1,)"}, {"stride", "(3,)"}, {"pooling_convention", "full"}};
  CHECK_EQ(of_op("Pooling", sparse, {1, 1, 3}), "x (1, 1, 3) -> (1, 1, 2)");
  CHECK_EQ(of_op("Pooling_v1", sparse, {1, 1, 3}), "x (1, 1, 3) -> (1, 1, 1)");
}

TEST(recurrent_layers_infer_their_states_and_parameters) {
  const AttrMap lstm{
      {"state_size", "5"}, {"num_layers", "2"}, {"mode", "lstm"}, {"state_outputs", "1"}, {"bidirectional", "1"}};
  CHECK_EQ(
      of_op("RNN", lstm, {7, 3, 4}),
      "x (7, 3, 4) n_parameters (1120,) n_state (4, 3, 5) n_state_cell (4, 3, 5) -> (7, 3, 10) (4, 3, 5) (4, 3, 5)");
  CHECK_EQ(of_op("RNN", {{"state_size", "3"}, {"num_layers", "1"}, {"mode", "gru"}}, {2, 3, 2}),
           "x (2, 3, 2) n_parameters (63,) n_state (1, 3, 3) -> (2, 3, 3)");
  CHECK_EQ(
      of_op("RNN", {{"state_size", "4"}, {"num_layers", "1"}, {"mode", "lstm"}, {"projection_size", "2"}}, {2, 3, 6}),
      "x (2, 3, 6) n_parameters (168,) n_state (1, 3, 2) n_state_cell (1, 3, 4) -> (2, 3, 2)");
  // The batch size may follow from a state alone.
  const Symbol rnn = make("RNN", "n", lstm, {var("x")});
  CHECK_EQ(
      shapes_of(rnn, {{"x", Shape{7, X, 4}}, {"n_state_cell", Shape{4, 3, 5}}}),
      "x (7, 3, 4) n_parameters (1120,) n_state (4, 3, 5) n_state_cell (4, 3, 5) -> (7, 3, 10) (4, 3, 5) (4, 3, 5)");
}

TEST(labels_follow_from_the_scores) {
  CHECK_EQ(of_op("SoftmaxOutput", {}, {4, 3}), "x (4, 3) n_label (4,) -> (4, 3)");
  CHECK_EQ(of_op("SoftmaxOutput", {{"multi_output", "1"}}, {4, 3, 5, 6}),
           "x (4, 3, 5, 6) n_label (4, 30) -> (4, 3, 5, 6)");
  CHECK_EQ(of_op("SoftmaxOutput", {{"preserve_shape", "1"}}, {4, 3, 5}), "x (4, 3, 5) n_label (4, 3) -> (4, 3, 5)");
  CHECK_EQ(of_op("LinearRegressionOutput", {}, {4, 1}), "x (4, 1) n_label (4,) -> (4, 1)");
  CHECK_EQ(of_op("LinearRegressionOutput", {}, {4, 2}), "x (4, 2) n_label (4, 2) -> (4, 2)");
  CHECK_EQ(of_op("SVMOutput", {}, {4, 3}), "x (4, 3) n_label (4,) -> (4, 3)");
  CHECK_EQ(of_op("softmax_cross_entropy", {}, {4, 3}), "x (4, 3) n_label (4,) -> (1,)");
  const Symbol multi = make("SoftmaxOutput", "n", {{"multi_output", "1"}}, {var("x"), var("y")});
  CHECK_EQ(shapes_of(multi, {{"x", Shape{4, 3, 5}}, {"y", Shape{4, 1, 5}}}), "x (4, 3, 5) y (4, 1, 5) -> (4, 3, 5)");
  CHECK_EQ(shapes_of(multi, {{"x", Shape{4, 3, 5}}, {"y", Shape{4, 3, 5}}}), "x (4, 3, 5) y (4, 3, 5) -> (4, 3, 5)");
  CHECK_THROWS(shapes_of(multi, {{"x", Shape{4, 3, 5}}, {"y", Shape{4, 3}}}), Error,
               "node 'n' (SoftmaxOutput): label: expected (4, 5), (4, 5) or (4, 1, 5), found (4, 3)");
}

TEST(reshape_reads_all_its_codes) {
  CHECK_EQ(reshaped("(4, 0, 2)", {2, 3, 4}), "x (2, 3, 4) -> (4, 3, 2)");
  CHECK_EQ(reshaped("(2, 0, 0)", {2, 3, 4}), "x (2, 3, 4) -> (2, 3, 4)");
  CHECK_EQ(reshaped("(6, 1, -1)", {2, 3, 4}), "x (2, 3, 4) -> (6, 1, 4)");
  CHECK_EQ(reshaped("(3, -1, 8)", {2, 3, 4}), "x (2, 3, 4) -> (3, 1, 8)");
  CHECK_EQ(reshaped("(-1,)", {2, 3, 4}), "x (2, 3, 4) -> (24,)");
  CHECK_EQ(reshaped("(-2,)", {2, 3, 4}), "x (2, 3, 4) -> (2, 3, 4)");
  CHECK_EQ(reshaped("(2, -2)", {2, 3, 4}), "x (2, 3, 4) -> (2, 3, 4)");
  CHECK_EQ(reshaped("(-2, 1, 1)", {2, 3, 4}), "x (2, 3, 4) -> (2, 3, 4, 1, 1)");
  CHECK_EQ(reshaped("(-3, 4)", {2, 3, 4}), "x (2, 3, 4) -> (6, 4)");
  CHECK_EQ(reshaped("(-3, -3)", {2, 3, 4, 5}), "x (2, 3, 4, 5) -> (6, 20)");
  CHECK_EQ(reshaped("(0, -3)", {2, 3, 4}), "x (2, 3, 4) -> (2, 12)");
  CHECK_EQ(reshaped("(-3, -2)", {2, 3, 4}), "x (2, 3, 4) -> (6, 4)");
  CHECK_EQ(reshaped("(-4, 1, 2, -2)", {2, 3, 4}), "x (2, 3, 4) -> (1, 2, 3, 4)");
  CHECK_EQ(reshaped("(2, -4, -1, 3, -2)", {2, 3, 4}), "x (2, 3, 4) -> (2, 1, 3, 4)");
  CHECK_EQ(reshaped("(-1, 0)", {10, 5, 4}), "x (10, 5, 4) -> (40, 5)");
  CHECK_EQ(reshaped("(-1, 0)", {10, 5, 4}, true), "x (10, 5, 4) -> (50, 4)");
  CHECK_EQ(reshaped("(3, -1, 0)", {2, 3, 4, 5}, true), "x (2, 3, 4, 5) -> (3, 8, 5)");
  CHECK_EQ(reshaped("(5, 3, 0, -1)", {2, 3, 5, 5}, true), "x (2, 3, 5, 5) -> (5, 3, 5, 2)");
  CHECK_EQ(reshaped("(-2, 1, 30)", {2, 3, 5, 6}, true), "x (2, 3, 5, 6) -> (2, 3, 1, 30)");
  CHECK_EQ(reshaped("(-3, -3)", {2, 3, 5, 6}, true), "x (2, 3, 5, 6) -> (6, 30)");
  CHECK_EQ(reshaped("(16, -1, -4)", {64}, true), "x (64,) -> (16, 4)");
  CHECK_EQ(reshaped("(-2, -1, 16, -4)", {1, 2, 3, 64}, true), "x (1, 2, 3, 64) -> (1, 2, 3, 4, 16)");
  CHECK_EQ(of_op("Reshape", {{"target_shape", "(2, 0)"}}, {2, 3, 4}), "x (2, 3, 4) -> (2, 12)");
  CHECK_EQ(of_op("Reshape", {{"target_shape", "(0, 12)"}, {"keep_highest", "1"}}, {2, 3, 4}), "x (2, 3, 4) -> (2, 12)");
  for (const char *wrong : {"(5, 5)", "(-1, -1)", "(7, -1)", "(0, 0, 0, 0)", "(-5,)", "(-4, 2)", "(-4, -1, -1, -2)",
                            "(-4, 0, 2, -2)", "(-3, -3)", "(9223372036854775807, 3)"}) {
    CHECK_EQ(shape_error("Reshape", {{"shape", wrong}}, {2, 3, 4}), int(Code::kShape));
  }
}

TEST(operators_on_axes_follow_them) {
  CHECK_EQ(of_op("Flatten", {}, {2, 3, 4}), "x (2, 3, 4) -> (2, 12)");
  CHECK_EQ(of_op("expand_dims", {{"axis", "1"}}, {2, 3}), "x (2, 3) -> (2, 1, 3)");
  CHECK_EQ(of_op("expand_dims", {{"axis", "-1"}}, {2, 3}), "x (2, 3) -> (2, 3, 1)");
  CHECK_EQ(of_op("SwapAxis", {{"dim1", "0"}, {"dim2", "2"}}, {2, 3, 4}), "x (2, 3, 4) -> (4, 3, 2)");
  CHECK_EQ(of_op("transpose", {}, {2, 3, 4}), "x (2, 3, 4) -> (4, 3, 2)");
  CHECK_EQ(of_op("transpose", {{"axes", "(1, 2, 0)"}}, {2, 3, 4}), "x (2, 3, 4) -> (3, 4, 2)");
  CHECK_EQ(of_op("SliceChannel", {{"num_outputs", "2"}}, {2, 6}), "x (2, 6) -> (2, 3) (2, 3)");
  CHECK_EQ(of_op("SliceChannel", {{"num_outputs", "2"}, {"axis", "0"}, {"squeeze_axis", "1"}}, {2, 6}),
           "x (2, 6) -> (6,) (6,)");
  const Symbol joint = make("Concat", "n", {{"dim", "-1"}}, {var("x"), var("y")});
  CHECK_EQ(shapes_of(joint, {{"x", Shape{2, 3}}, {"y", Shape{2, 4}}}), "x (2, 3) y (2, 4) -> (2, 7)");
  CHECK_EQ(shapes_of(joint, {{"x", Shape{2, 3}}, {"y", Shape{X, 4}}}), "x (2, 3) y (2, 4) -> (2, 7)");
  CHECK_THROWS(shapes_of(joint, {{"x", Shape{2, 3}}, {"y", Shape{5, 4}}}), Error, "node 'n' (Concat): arg1: expected");
  CHECK_EQ(shape_error("transpose", {{"axes", "(0, 0, 1)"}}, {2, 3, 4}), int(Code::kShape));
  CHECK_EQ(shape_error("SliceChannel", {{"num_outputs", "4"}}, {2, 6}), int(Code::kShape));
  CHECK_EQ(shape_error("SliceChannel", {{"num_outputs", "2"}, {"axis", "2"}}, {2, 6}), int(Code::kInvalidArgument));
}

TEST(data_that_do_not_fit_are_refused) {
  const AttrMap conv{{"kernel", "(3, 3)"}, {"num_filter", "4"}};
  CHECK_EQ(shape_error("Convolution", conv, {1, 1, 2, 8}), int(Code::kShape));
  CHECK_EQ(shape_error("Convolution", conv, {1, 1, 8}), int(Code::kShape));
  CHECK_EQ(shape_error("Convolution", {{"kernel", "(1, 1)"}, {"num_filter", "4"}, {"num_group", "2"}}, {1, 3, 8, 8}),
           int(Code::kShape));
  CHECK_EQ(shape_error("Pooling", {{"kernel", "(3, 3)"}}, {1, 1, 2, 8}), int(Code::kShape));
  CHECK_EQ(shape_error("Deconvolution", {{"kernel", "(2, 2)"}, {"num_filter", "1"}, {"target_shape", "(99, 99)"}},
                       {1, 1, 2, 2}),
           int(Code::kShape));
  CHECK_EQ(shape_error("RNN", {{"state_size", "4"}, {"num_layers", "1"}, {"mode", "gru"}}, {2, 3}), int(Code::kShape));
}

TEST(attributes_out_of_range_are_refused) {
  const auto refused = [](const std::string &op, const AttrMap &attrs) {
    try {
      make(op, "n", attrs, {var("x")});
    } catch (const Error &e) {
      return int(e.code());
    }
    return 0;
  };
  const int wrong = int(Code::kInvalidArgument);
  CHECK_EQ(refused("FullyConnected", {{"num_hidden", "0"}}), wrong);
  CHECK_EQ(refused("Convolution", {{"kernel", "(0, 3)"}, {"num_filter", "4"}}), wrong);
  CHECK_EQ(refused("Convolution", {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"stride", "(1,)"}}), wrong);
  CHECK_EQ(refused("Convolution", {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"num_group", "3"}}), wrong);
  CHECK_EQ(refused("Convolution", {{"kernel", "(1,1,1,1)"}, {"num_filter", "4"}}), wrong);
  CHECK_EQ(refused("Convolution", {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"pad", "(9999999999, 0)"}}), wrong);
  CHECK_EQ(refused("Convolution", {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"layout", "NCW"}}), wrong);
  CHECK_EQ(refused("Pooling", {}), wrong);
  CHECK_EQ(refused("Pooling", {{"kernel", "(2, 2)"}, {"pad", "(2, 0)"}}), wrong);
  CHECK_EQ(refused("Pooling", {{"kernel", "(2, 2)"}, {"pool_type", "lp"}}), wrong);
  CHECK_EQ(refused("Dropout", {{"p", "1.5"}}), wrong);
  CHECK_EQ(refused("RNN", {{"state_size", "-1"}, {"num_layers", "1"}, {"mode", "gru"}}), wrong);
  CHECK_EQ(refused("Embedding", {{"input_dim", "0"}, {"output_dim", "1"}}), wrong);
  CHECK_EQ(refused("Embedding", {{"input_dim", "4294967297"}, {"output_dim", "1"}}), wrong);
}

// ---- graphs --------------------------------------------------------------------------------------------------------

TEST(inference_runs_in_both_directions) {
  // The batch size follows from a side branch alone.
  const Symbol fc = make("FullyConnected", "fc", {{"num_hidden", "3"}}, {var("x")});
  const Symbol net = make("Concat", "n", {}, {fc, var("y")});
  CHECK_EQ(shapes_of(net, {{"x", Shape{X, 4}}, {"y", Shape{5, 2}}}),
           "x (5, 4) fc_weight (3, 4) fc_bias (3,) y (5, 2) -> (5, 5)");
  // Shapes are inferred backwards through operators that keep or only move them.
  const Symbol act = make("Activation", "act", {{"act_type", "tanh"}}, {var("x")});
  const Symbol turned = make("transpose", "t", {}, {make("expand_dims", "e", {{"axis", "0"}}, {act})});
  const Symbol joint = make("Concat", "c", {{"dim", "2"}}, {turned, var("z")});
  CHECK_EQ(shapes_of(joint, {{"z", Shape{4, 2, 3}}}), "x (2, 4) z (4, 2, 3) -> (4, 2, 4)");
  // Data shapes cannot be inferred from weights (SYM-10).
  CHECK_EQ(shapes_of(fc, {{"fc_weight", Shape{3, 4}}}), "x [?] fc_weight (3, 4) fc_bias (3,) -> [?] incomplete");
}

TEST(what_is_unknown_stays_unknown_without_error) {
  const Symbol fc = make("FullyConnected", "fc", {{"num_hidden", "3"}}, {var("x")});
  CHECK_EQ(shapes_of(fc, {}), "x [?] fc_weight (3, ?) fc_bias (3,) -> [?] incomplete");
  CHECK_EQ(shapes_of(fc, {{"x", Shape{X, 5}}}), "x (?, 5) fc_weight (3, 5) fc_bias (3,) -> (?, 3) incomplete");
  CHECK_EQ(shapes_of(fc, {{"x", Shape{2, X}}}), "x (2, ?) fc_weight (3, ?) fc_bias (3,) -> (2, 3) incomplete");
}

TEST(shape_attributes_take_part_and_given_shapes_win) {
  const Symbol fc = make("FullyConnected", "fc", {{"num_hidden", "3"}}, {var("x", {{"__shape__", "(2, 7)"}})});
  CHECK_EQ(shapes_of(fc, {}), "x (2, 7) fc_weight (3, 7) fc_bias (3,) -> (2, 3)");
  CHECK_EQ(shapes_of(fc, {{"x", Shape{4, 5}}}), "x (4, 5) fc_weight (3, 5) fc_bias (3,) -> (4, 3)");
  CHECK_EQ(shapes_of(fc, {{"nobody", Shape{1}}}), "x (2, 7) fc_weight (3, 7) fc_bias (3,) -> (2, 3)");
  const Symbol open = make("FullyConnected", "fc", {{"num_hidden", "3"}}, {var("x", {{"__shape__", "(0, 7)"}})});
  CHECK_EQ(shapes_of(open, {}), "x (?, 7) fc_weight (3, 7) fc_bias (3,) -> (?, 3) incomplete");
  CHECK_THROWS(shapes_of(var("x", {{"__shape__", "(2,"}}), {}), Error, "variable 'x'");
}

TEST(contradictions_name_node_expected_and_found) {
  const Symbol fc = make("FullyConnected", "fc", {{"num_hidden", "3"}}, {var("x")});
  CHECK_THROWS(shapes_of(fc, {{"x", Shape{2, 4}}, {"fc_weight", Shape{3, 5}}}), Error,
               "node 'fc' (FullyConnected): weight: expected (3, 4), found (3, 5)");
  const Symbol label = make("SoftmaxOutput", "sm", {}, {var("x"), var("y")});
  CHECK_THROWS(shapes_of(label, {{"x", Shape{2, 4}}, {"y", Shape{3}}}), Error,
               "node 'sm' (SoftmaxOutput): label: expected (2,), found (3,)");
  CHECK_THROWS(dtypes_of(label, {{"x", Dtype::kFloat16}, {"y", Dtype::kFloat32}}), Error,
               "node 'sm' (SoftmaxOutput): input 1: expected float16, found float32");
}

TEST(arrays_beyond_any_memory_are_refused) {
  const Symbol fc = make("FullyConnected", "fc", {{"num_hidden", "2000000000"}}, {var("x")});
  for (const Shape &x : {Shape{int64_t(1) << 62, 8}, Shape{int64_t(1) << 40, int64_t(1) << 40}, Shape{2, -7}}) {
    CHECK_THROWS(shapes_of(fc, {{"x", x}}), Error, "variable 'x': shape: expected");
  }
  CHECK_THROWS(shapes_of(fc, {{"x", Shape{1, int64_t(1) << 20}}}), Error,
               "node 'fc' (FullyConnected): input: expected at most");
}

TEST(two_variables_of_one_name_are_told_apart_by_node) {
  const Graph graph(make("Concat", "c", {}, {var("x"), var("x")}));
  Inferred inferred;
  infer_shapes_at(graph, {Shape{2, 3}, Shape{2, 4}, Shape()}, &inferred);
  CHECK_EQ(inferred.shapes[2][0], (Shape{2, 7}));
}

TEST(dtypes_flow_from_the_data) {
  const Symbol fc = make("FullyConnected", "fc", {{"num_hidden", "3"}}, {var("x")});
  CHECK_EQ(dtypes_of(fc, {{"x", Dtype::kFloat16}}), "x float16 fc_weight float16 fc_bias float16 -> float16");
  CHECK_EQ(dtypes_of(fc, {{"x", Dtype::kInt32}}), "x int32 fc_weight int32 fc_bias int32 -> int32");
  CHECK_EQ(dtypes_of(fc, {{"fc_bias", Dtype::kFloat64}}), "x float64 fc_weight float64 fc_bias float64 -> float64");
  CHECK_EQ(dtypes_of(fc, {}).find("incomplete") != std::string::npos, true);
  const Symbol bn = make("BatchNorm", "bn", {}, {fc});
  CHECK_EQ(dtypes_of(bn, {{"x", Dtype::kFloat16}}),
           "x float16 fc_weight float16 fc_bias float16 bn_gamma float32 bn_beta float32 bn_moving_mean float32 "
           "bn_moving_var float32 -> float16");
  const Symbol half = make("FullyConnected", "fc", {{"num_hidden", "3"}}, {var("x", {{"__dtype__", "2"}})});
  CHECK_EQ(dtypes_of(half, {}), "x float16 fc_weight float16 fc_bias float16 -> float16");
  CHECK_EQ(dtypes_of(half, {{"x", Dtype::kFloat64}}), "x float64 fc_weight float64 fc_bias float64 -> float64");
  CHECK_THROWS(dtypes_of(var("x", {{"__dtype__", "77"}}), {}), Error, "variable 'x'");
  const Symbol rows = make("Embedding", "e", {{"input_dim", "9"}, {"output_dim", "2"}}, {var("x")});
  CHECK_EQ(dtypes_of(rows, {{"x", Dtype::kInt32}}), "x int32 e_weight float32 -> float32");
  const Symbol soft = make("softmax", "s", {{"dtype", "float32"}}, {var("x")});
  CHECK_EQ(dtypes_of(soft, {{"x", Dtype::kFloat16}}), "x float16 -> float32");
}

UNIT_MAIN()
