// SPDX-License-Identifier: Apache-2.0
#include "op/fused_layers.hpp"

namespace cohort {
namespace {

using A = FusedLayerAttrs;

// Names the inputs that this node has: as many as its graph has, followed by the bounds of quantized ones.
void take_inputs(A &a, const std::vector<const char *> &names) {
  if (names.size() != a.inside[0]->num_inputs()) {
    throw Error(
        Code::kInvalidArgument,
        text("sub-graph: expected ", names.size(), " inputs, bounds included, found ", a.inside[0]->num_inputs()),
        "sub-graph");
  }
  for (size_t i = 0; i < names.size(); ++i) {
    a.inputs.push_back({names[i], "", nullptr, a.inside[0]->is_auxiliary(i)});
  }
  a.num_outputs = int(a.inside[0]->num_outputs());
  a.sources.resize(1);
  for (size_t i = 0; i < names.size(); ++i) a.sources[0].push_back(int(i));
}

void check_convolution(A &a) {
  const size_t own = a.inside[0]->num_inputs() - (a.quantized ? a.with_sum ? 4 : 2 : 0);
  std::vector<const char *> names = {"data", "weight"};
  if (own > 2u + (a.with_bn ? 4 : 0) + (a.with_sum ? 1 : 0)) names.push_back("bias");
  if (a.with_bn) names.insert(names.end(), {"gamma", "beta", "mean", "var"});
  if (a.with_sum) names.push_back("sum");
  if (a.quantized) names.insert(names.end(), {"data_min", "data_max"});
  if (a.quantized && a.with_sum) names.insert(names.end(), {"sum_min", "sum_max"});
  take_inputs(a, names);
}

void check_fully_connected(A &a) {
  const bool bounded_weights = a.quantized && !a.channel_wise_quantize;
  const bool has_bias = a.inside[0]->num_inputs() > (bounded_weights ? 6u : a.quantized ? 4u : 2u);
  std::vector<const char *> names = {"data", "weight"};
  if (has_bias) names.push_back("bias");
  if (a.quantized) names.insert(names.end(), {"min_data", "max_data"});
  if (bounded_weights) names.insert(names.end(), {"min_weight", "max_weight"});
  if (bounded_weights && has_bias) names.insert(names.end(), {"min_bias", "max_bias"});
  take_inputs(a, names);
}

void check_scores(A &a) {
  std::vector<const char *> names = {"queries_keys_values"};
  if (a.quantized) names.insert(names.end(), {"min_qkv", "max_qkv"});
  take_inputs(a, names);
}

void check_values(A &a) {
  std::vector<const char *> names = {"queries_keys_values", "attention"};
  if (a.quantized) names.insert(names.end(), {"min_qkv", "max_qkv", "min_attention", "max_attention"});
  take_inputs(a, names);
}

OpBuilder<A> fused_layer(const char *name, const char *doc) {
  OpBuilder<A> op(name);
  return op.doc(doc)
      .attr(&A::quantized, "quantized", false, "Whether inputs are quantized, with their bounds as further inputs.")
      .attr(&A::min_calib_range, "min_calib_range", std::nullopt,
            "The lower bound of a quantized output; None: the output is int32.")
      .attr(&A::max_calib_range, "max_calib_range", std::nullopt,
            "The upper bound of a quantized output; None: the output is int32.")
      .input("data", "The inputs of the graph, then the bounds of quantized ones.")
      .own_inputs([](const A &a) -> const std::vector<InputField> & { return a.inputs; })
      .subgraphs({"layer"}, &A::inside, &A::num_args)
      .outputs([](const A &a) { return a.num_outputs; })
      .infer_shape([](const A &a, Shapes &in, Shapes &out) { a.inside[0]->infer_shapes(&in, &out); })
      .infer_dtype([](const A &a, Dtypes &in, Dtypes &out) { a.inside[0]->infer_dtypes(&in, &out); })
      .own_mutates([](const A &, PassKind) { return std::vector<int>(); })  // statistics are only read
      .gradient(Gradient())
      .flops([](const A &a, const Shapes &in, const Shapes &) { return a.inside[0]->flops(in); });
}

std::vector<std::string> output_names(const A &a) {
  if (a.num_outputs == 1) return {"output"};
  return {"output", "min_output", "max_output"};
}

const char *const kSaysTheGraph = "Ignored: the graph determines it.";

[[maybe_unused]] const auto &kConvolution =
    fused_layer(
        "_sg_mkldnn_conv",
        "Convolution fused with the layers after it (BatchNorm by the moving statistics, a sum, an activation), "
        "as MXNet fuses them for inference. No gradients.")
        .attr(&A::with_bn, "with_bn", false, "Whether the graph has a BatchNorm.")
        .attr(&A::with_sum, "with_sum", false, "Whether the graph has a sum.")
        .ignored("with_act", "boolean", "0", kSaysTheGraph)
        .ignored("with_postsum_act", "boolean", "0", kSaysTheGraph)
        .ignored("with_relu", "boolean", "0", kSaysTheGraph)
        .ignored("with_postsum_relu", "boolean", "0", kSaysTheGraph)
        .output_names([](const A &a) {
          return a.num_outputs == 1 ? std::vector<std::string>{"output"}
                                    : std::vector<std::string>{"output", "output_min", "output_max"};
        })
        .check(check_convolution);

[[maybe_unused]] const auto &kFullyConnected =
    fused_layer("_sg_mkldnn_fully_connected",
                "FullyConnected fused with the function after it, as MXNet fuses them for inference. No gradients.")
        .attr(&A::enable_float_output, "enable_float_output", false, "Whether the output is float32, without bounds.")
        .attr(&A::channel_wise_quantize, "channel_wise_quantize", false,
              "Whether weight and bias are float32 and are quantized with one range per output.")
        .ignored("with_eltwise", "boolean", "0", kSaysTheGraph)
        .ignored("with_relu", "boolean", "0", kSaysTheGraph)
        .output_names(output_names)
        .check(check_fully_connected);

OpBuilder<A> fused_attention(const char *name, const char *doc) {
  OpBuilder<A> op = fused_layer(name, doc);
  return op.required(&A::heads, "heads", "The number of heads.")
      .range(1)
      .attr(&A::enable_float_output, "enable_float_output", false, "Whether the output is float32, without bounds.")
      .names_only_input()
      .output_names(output_names);
}

[[maybe_unused]] const auto &kScores =
    fused_attention("_sg_mkldnn_selfatt_qk",
                    "Self-attention scores: queries times keys / sqrt(width), in floats or int8. No gradients.")
        .check(check_scores);

[[maybe_unused]] const auto &kValues =
    fused_attention("_sg_mkldnn_selfatt_valatt",
                    "Self-attention: attention times values, in floats or int8 (attention: uint8). No gradients.")
        .check(check_values);

}  // namespace
}  // namespace cohort
