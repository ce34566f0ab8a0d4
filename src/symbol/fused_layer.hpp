// SPDX-License-Identifier: Apache-2.0
// The graph inside a node of op/fused_layers.hpp, rewritten to plain operators that compute the same: batch norms
// folded into weights, quantized inputs as the numbers they represent, weights rounded to int8.
#pragma once

#include "symbol/node_graph.hpp"

namespace cohort {

bool is_fused_layer(const Node &node);

// The sub-graph as the operator sees it: quantization bounds follow the inputs and the output.
class FusedLayer final : public NodeGraph {
 public:
  // `node` has its attributes and its sub-graph. Throws kInvalidArgument if MXNet would not create such a node.
  static std::shared_ptr<const FusedLayer> make(const Node &node);

  bool is_auxiliary(size_t input) const override;
  void infer_shapes(Shapes *in, Shapes *out) const override;
  void infer_dtypes(Dtypes *in, Dtypes *out) const override;
  double flops(const Shapes &in) const override;

 private:
  class Maker;
  FusedLayer(const Maker &made, std::shared_ptr<const NodeGraph> given);

  std::shared_ptr<const NodeGraph> given_;
  std::vector<Dtype> types_;  // per input; kNone: int8 or uint8
};

}  // namespace cohort
