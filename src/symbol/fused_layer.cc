// SPDX-License-Identifier: Apache-2.0
#include "symbol/fused_layer.hpp"

#include <algorithm>
#include <charconv>

#include "op/activation.hpp"
#include "op/batch_norm.hpp"
#include "op/convolution.hpp"
#include "op/fully_connected.hpp"
#include "op/fused_layers.hpp"
#include "op/interleaved_attention.hpp"
#include "op/leaky_relu.hpp"

namespace cohort {
namespace {

struct LayerKind {
  const char *op, *layer;
  std::vector<const char *> followers;
};

const LayerKind kLayerKinds[] = {
    {"_sg_mkldnn_conv", "Convolution", {"Activation", "LeakyReLU", "clip", "BatchNorm", "elemwise_add"}},
    {"_sg_mkldnn_fully_connected",
     "FullyConnected",
     {"Activation", "LeakyReLU", "clip", "square", "sqrt", "exp", "abs"}},
    {"_sg_mkldnn_selfatt_qk", "_contrib_interleaved_matmul_selfatt_qk", {}},
    {"_sg_mkldnn_selfatt_valatt", "_contrib_interleaved_matmul_selfatt_valatt", {}},
};

const LayerKind *kind_of(const Node &node) {
  for (const LayerKind &kind : kLayerKinds) {
    if (node.op->name == kind.op) return &kind;
  }
  return nullptr;
}

[[noreturn]] void refuse(const std::string &what) {
  throw Error(Code::kInvalidArgument, "sub-graph: " + what, "sub-graph");
}

FusedLayerAttrs attributes_of(const Node &node) {
  FusedLayerAttrs a;
  for (const AttrField &field : node.op->attrs) {
    const auto given = node.attrs.find(field.name);
    if (given != node.attrs.end()) field.set(&a, given->second);
  }
  return a;
}

// The shortest digits that read back as the same value.
template <typename T>
std::string number_text(T value) {
  char digits[64];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

Entry apply(const char *op, const AttrMap &attrs, std::vector<Entry> inputs) {
  auto node = std::make_shared<Node>();
  node->op = &get_op(op);
  node->name = op;
  node->attrs = attrs;
  node->parsed = node->op->parse(attrs);
  node->inputs = std::move(inputs);
  return {std::move(node), 0};
}

Entry output(const Entry &of, int index) { return {of.node, index}; }

}  // namespace

// Builds the executed graph node by node from the given one.
class FusedLayer::Maker {
 public:
  explicit Maker(const Node &node)
      : a_(attributes_of(node)),
        kind_(*kind_of(node)),
        is_convolution_(kind_.layer == std::string("Convolution")),
        is_attention_(kind_.followers.empty()),
        given_(*node.subgraphs[0]),
        graph_(given_.graph()),
        made_(graph_.nodes.size()) {
    find_layer();
    for (size_t i = 0; i < given_.num_inputs(); ++i) made_[size_t(given_.inputs()[i])] = add_variable();
    if (a_.quantized) add_bounds();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n]->is_variable() || int(n) == norm_) continue;
      if (int(n) == layer_) {
        made_[n] = make_layer();
        if (norm_ >= 0) made_[size_t(norm_)] = made_[n];
      } else {
        made_[n] = copy(int(n), inputs_of(int(n)));
      }
    }
    const Entry result = made_[size_t(graph_.heads[0].node)];
    heads = a_.quantized && !a_.enable_float_output ? as_bytes(result) : std::vector<Entry>{result};
  }

  std::vector<Entry> heads, variables;
  std::vector<Dtype> types;

 private:
  // ---- the given graph

  bool may_follow(const std::string &op) const {
    return std::find(kind_.followers.begin(), kind_.followers.end(), op) != kind_.followers.end();
  }

  bool is_variable(const Graph::Input &input) const { return graph_.nodes[size_t(input.node)]->is_variable(); }

  void find_layer() {
    const std::string layer = kind_.layer;
    if (graph_.heads.size() != 1) refuse(text("expected 1 output, found ", graph_.heads.size()));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node &node = *graph_.nodes[n];
      const std::vector<Graph::Input> &inputs = graph_.inputs[n];
      if (node.is_variable()) continue;
      const auto expect = [&](bool holds, const char *what) {
        if (!holds) refuse(text("node '", node.name, "' (", node.op->name, "): expected ", what));
      };
      const size_t num_variables =
          size_t(std::count_if(inputs.begin(), inputs.end(), [&](const auto &i) { return is_variable(i); }));
      if (node.op->name == layer) {
        expect(layer_ < 0, text("one ", layer, ", found two").c_str());
        expect(num_variables == inputs.size(), "variables as inputs");
        layer_ = last_ = int(n);
        continue;
      }
      expect(layer_ >= 0, text("a ", layer, " before it").c_str());
      expect(may_follow(node.op->name),
             text("an operator that is fused with ", layer, ", found another operator").c_str());
      const size_t from = node.op->name == "elemwise_add" && is_variable(inputs[0]) ? 1 : 0;
      expect(inputs[from].node == last_ && inputs[from].index == 0 && num_variables + 1 == inputs.size(),
             "the previous node's output and variables as inputs");
      if (node.op->name == "BatchNorm") {
        expect(last_ == layer_, text("to directly follow the ", layer).c_str());
        norm_ = int(n);
      }
      if (node.op->name == "elemwise_add") {
        expect(sum_ < 0, "one sum, found two");
        sum_ = inputs[1 - from].node;
      }
      last_ = int(n);
    }
    if (layer_ < 0) refuse(text("expected a ", layer, ", found none"));
    if (graph_.heads[0].node != last_ || graph_.heads[0].index != 0)
      refuse("expected the last node's output as its output");
    if (is_convolution_ && a_.with_bn != (norm_ >= 0)) refuse("expected a BatchNorm where 'with_bn' is true");
    if (is_convolution_ && a_.with_sum != (sum_ >= 0)) refuse("expected a sum where 'with_sum' is true");
    if (is_attention_) {
      const int heads = graph_.nodes[size_t(layer_)]->parsed.get<InterleavedAttentionAttrs>().heads;
      if (a_.heads > 0 && a_.heads != heads) refuse(text("expected 'heads' of ", a_.heads, ", found ", heads));
    }
    const bool is_scaled = a_.calibrated() || a_.enable_float_output;
    if (a_.quantized && a_.channel_wise_quantize && !is_scaled) {
      throw Error(Code::kInvalidArgument,
                  "channel_wise_quantize: expected 'min_calib_range' and 'max_calib_range', or "
                  "'enable_float_output', found neither",
                  "channel_wise_quantize");
    }
  }

  bool has_bias() const { return graph_.inputs[size_t(layer_)].size() > 2; }
  int input_of(int node, size_t index) const { return graph_.inputs[size_t(node)][index].node; }

  // ---- the executed graph

  Entry add_variable(Dtype type = Dtype::kFloat32) {
    auto node = std::make_shared<Node>();
    node->name = "input" + std::to_string(variables.size());
    variables.push_back({std::move(node), 0});
    types.push_back(type);
    return variables.back();
  }

  std::vector<Entry> inputs_of(int node) const {
    std::vector<Entry> inputs;
    for (const Graph::Input &input : graph_.inputs[size_t(node)]) inputs.push_back(made_[size_t(input.node)]);
    return inputs;
  }

  Entry copy(int node, std::vector<Entry> inputs) const {
    auto copied = std::make_shared<Node>(*graph_.nodes[size_t(node)]);
    copied->inputs = std::move(inputs);
    return {std::move(copied), 0};
  }

  // Converts quantised bytes to the floats that they represent.
  void widen(int node, Dtype type) {
    Entry &bytes = made_[size_t(node)];
    for (size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].node == bytes.node) types[i] = type;
    }
    const Entry low = add_variable(), high = add_variable();
    const std::vector<Graph::Input> &inputs = graph_.inputs[size_t(layer_)];
    if (node == inputs[0].node) data_ = {bytes, low, high};
    if (!is_convolution_ && inputs.size() > 1 && node == inputs[1].node) weight_ = {bytes, low, high};
    bytes = apply("_contrib_dequantize", {}, {bytes, low, high});
  }

  void add_bounds() {
    if (is_attention_) {
      widen(input_of(layer_, 0), Dtype::kInt8);
      if (graph_.inputs[size_t(layer_)].size() > 1) return widen(input_of(layer_, 1), Dtype::kUint8);
      weight_ = data_;  // queries and keys are in one array
      return;
    }
    widen(input_of(layer_, 0), Dtype::kNone);
    if (sum_ >= 0) widen(sum_, Dtype::kNone);
    if (is_convolution_ || a_.channel_wise_quantize) return;
    widen(input_of(layer_, 1), Dtype::kInt8);
    if (has_bias()) widen(input_of(layer_, 2), Dtype::kInt8);
  }

  Entry make_layer() {
    std::vector<Entry> inputs = inputs_of(layer_);
    if (norm_ >= 0) fold_norm(&inputs);
    if (a_.quantized && (is_convolution_ || a_.channel_wise_quantize)) inputs[1] = rounded(inputs[1]);
    Entry made = copy(layer_, std::move(inputs));
    if (norm_ < 0 || has_bias()) return made;
    auto with_bias = std::make_shared<Node>(*made.node);
    with_bias->attrs["no_bias"] = "False";
    with_bias->parsed = with_bias->op->parse(with_bias->attrs);
    return {std::move(with_bias), 0};
  }

  // Always uses the moving statistics: y = conv(x, w s, b s + beta - mean s), s = gamma / sqrt(var + eps).
  void fold_norm(std::vector<Entry> *inputs) const {
    const BatchNormAttrs &norm = graph_.nodes[size_t(norm_)]->parsed.get<BatchNormAttrs>();
    const std::vector<Entry> in = inputs_of(norm_);
    const Entry gamma = norm.fix_gamma ? apply("ones_like", {}, {in[1]}) : in[1];
    const AttrMap wide = {{"dtype", "float64"}};  // like MXNet: another rounding would move a weight to another byte
    const Entry shifted = apply("_plus_scalar", {{"scalar", number_text(norm.eps)}}, {apply("Cast", wide, {in[4]})});
    const Entry ratio = apply("elemwise_div", {}, {apply("Cast", wide, {gamma}), apply("sqrt", {}, {shifted})});
    const Entry scale = apply("Cast", {{"dtype", "float32"}}, {ratio});
    const Entry mean = has_bias() ? apply("elemwise_sub", {}, {(*inputs)[2], in[3]}) : apply("negative", {}, {in[3]});
    const Entry bias = apply("elemwise_add", {}, {in[2], apply("elemwise_mul", {}, {mean, scale})});
    const size_t num_axes = graph_.nodes[size_t(layer_)]->parsed.get<ConvolutionAttrs>().kernel.size();
    std::string shape = "(-1, 1";
    for (size_t i = 0; i < num_axes; ++i) shape += ", 1";
    const Entry by_row = apply("Reshape", {{"shape", shape + ")"}}, {scale});
    (*inputs)[1] = apply("broadcast_mul", {}, {(*inputs)[1], by_row});
    inputs->resize(2);
    inputs->push_back(bias);
  }

  // A weight rounded to int8: each row in its own range, or, if the output is int32, all rows in one range.
  Entry rounded(const Entry &weight) {
    AttrMap over = {{"keepdims", "True"}};
    if (a_.calibrated() || a_.enable_float_output) over.insert({{"axis", "0"}, {"exclude", "True"}});
    const Entry largest = apply("max", over, {apply("abs", {}, {weight})});
    const Entry range = apply("_maximum_scalar", {{"scalar", "1e-30"}}, {largest});
    // In MXNet's order of operations: a weight at the end of the range lies between two bytes.
    const Entry scale = apply("_rdiv_scalar", {{"scalar", "127.5"}}, {range});
    const AttrMap ones = {{"out_type", "int8"}, {"min_calib_range", "-127.5"}, {"max_calib_range", "127.5"}};
    const Entry bytes = apply("_contrib_quantize_v2", ones, {apply("broadcast_mul", {}, {weight, scale})});
    if (over.size() == 1) {
      const Entry high = apply("Reshape", {{"shape", "(-1,)"}}, {range});
      weight_ = {bytes, apply("negative", {}, {high}), high};
    }
    const Entry whole = apply("_contrib_dequantize", {}, {bytes, output(bytes, 1), output(bytes, 2)});
    return apply("broadcast_div", {}, {whole, scale});
  }

  // Whether MXNet uses uint8 for the output of the last function.
  bool is_unsigned() const {
    const Node &last = *graph_.nodes[size_t(last_)];
    const std::string &op = last.op->name;
    if (op == "Activation") {
      const ActivationAttrs::Type type = last.parsed.get<ActivationAttrs>().act_type;
      return type == ActivationAttrs::kRelu || type == ActivationAttrs::kSigmoid || type == ActivationAttrs::kSoftrelu;
    }
    if (op == "LeakyReLU") {
      const LeakyReLUAttrs &leaky = last.parsed.get<LeakyReLUAttrs>();
      return leaky.act_type == LeakyReLUAttrs::kLeaky && (!is_convolution_ || leaky.slope == 0);
    }
    return last_ != layer_ && op != "BatchNorm" && op != "elemwise_add";
  }

  std::vector<Entry> as_bytes(const Entry &result) const {
    if (a_.calibrated()) {
      const AttrMap range = {{"out_type", is_unsigned() ? "uint8" : "int8"},
                             {"min_calib_range", number_text(*a_.min_calib_range)},
                             {"max_calib_range", number_text(*a_.max_calib_range)}};
      const Entry bytes = apply("_contrib_quantize_v2", range, {result});
      // Attention uses the bounds as given, not a symmetric range.
      if (is_attention_) return {bytes, number(*a_.min_calib_range), number(*a_.max_calib_range)};
      return {bytes, output(bytes, 1), output(bytes, 2)};
    }
    // int32: one unit of the output represents the product of one unit of the data and one of the weight.
    const Entry one = one_of(data_.bytes), other = one_of(weight_.bytes);
    const Entry unit = apply("elemwise_mul", {},
                             {apply("_contrib_dequantize", {}, {one, data_.low, data_.high}),
                              apply("_contrib_dequantize", {}, {other, weight_.low, weight_.high})});
    const Entry range =
        apply("_contrib_quantized_elemwise_mul", {}, {one, other, data_.low, data_.high, weight_.low, weight_.high});
    const Entry whole = apply("rint", {}, {apply("broadcast_div", {}, {result, unit})});
    const Entry cut = apply("clip", {{"a_min", "-2147483520"}, {"a_max", "2147483520"}}, {whole});
    return {apply("Cast", {{"dtype", "int32"}}, {cut}), output(range, 1), output(range, 2)};
  }

  static Entry number(float value) { return apply("_full", {{"shape", "(1,)"}, {"value", number_text(value)}}, {}); }

  static Entry one_of(const Entry &bytes) {
    const Entry flat = apply("Reshape", {{"shape", "(-1,)"}}, {bytes});
    return apply("ones_like", {}, {apply("slice_axis", {{"axis", "0"}, {"begin", "0"}, {"end", "1"}}, {flat})});
  }

  struct Bytes {
    Entry bytes, low, high;
  };

  const FusedLayerAttrs a_;
  const LayerKind &kind_;
  const bool is_convolution_, is_attention_;
  const NodeGraph &given_;
  const Graph &graph_;
  std::vector<Entry> made_;                            // the first output of each node of the graph
  int layer_ = -1, norm_ = -1, sum_ = -1, last_ = -1;  // nodes
  Bytes data_, weight_;
};

bool is_fused_layer(const Node &node) { return node.subgraphs.size() == 1 && kind_of(node) != nullptr; }

std::shared_ptr<const FusedLayer> FusedLayer::make(const Node &node) {
  return std::shared_ptr<const FusedLayer>(new FusedLayer(Maker(node), node.subgraphs[0]));
}

FusedLayer::FusedLayer(const Maker &made, std::shared_ptr<const NodeGraph> given)
    : NodeGraph(Symbol(made.heads), made.variables), given_(std::move(given)), types_(made.types) {}

bool FusedLayer::is_auxiliary(size_t input) const {
  return input < given_->num_inputs() && given_->is_auxiliary(input);
}

void FusedLayer::infer_shapes(Shapes *in, Shapes *out) const {
  Shapes own(in->begin(), in->begin() + std::ptrdiff_t(given_->num_inputs())), first = {(*out)[0]};
  given_->infer_shapes(&own, &first);
  std::copy(own.begin(), own.end(), in->begin());
  (*out)[0] = first[0];
  for (size_t i = own.size(); i < in->size(); ++i) unify((*in)[i], Shape{1}, "bound");
  for (size_t i = 1; i < out->size(); ++i) unify((*out)[i], Shape{1}, "bound");
}

void FusedLayer::infer_dtypes(Dtypes *in, Dtypes *out) const {
  if (in->size() == given_->num_inputs()) return given_->infer_dtypes(in, out);  // all floats
  for (size_t i = 0; i < in->size(); ++i) {
    if (types_[i] != Dtype::kNone) unify((*in)[i], types_[i], "input");
  }
  NodeGraph::infer_dtypes(in, out);
}

double FusedLayer::flops(const Shapes &in) const {
  return given_->flops(Shapes(in.begin(), in.begin() + std::ptrdiff_t(given_->num_inputs())));
}

}  // namespace cohort
