// SPDX-License-Identifier: Apache-2.0
// The graph in a node of op/fused_layers.hpp, and the graph of plain operators that computes what the node does: batch
// norms in the weights, bytes as what they stand for, weights rounded to bytes.
#pragma once

#include "symbol/node_graph.hpp"

namespace cohort {

bool is_fused_layer(const Node &node);

// As the operator sees its sub-graph: with the bounds of bytes behind the inputs, and behind the output.
class FusedLayer final : public NodeGraph {
 public:
  // `node` has its attributes and its sub-graph. Throws kInvalidArgument where MXNet would have made no such node.
  static std::shared_ptr<const FusedLayer> make(const Node &node);

  bool is_auxiliary(size_t input) const override;
  void infer_shapes(Shapes *in, Shapes *out) const override;
  void infer_dtypes(Dtypes *in, Dtypes *out) const override;
  double flops(const Shapes &in) const override;

 private:
  class Maker;
  FusedLayer(const Maker &made, std::shared_ptr<const NodeGraph> given);

  std::shared_ptr<const NodeGraph> given_;
  std::vector<Dtype> types_;  // of the inputs; kNone: int8 or uint8
};

}  // namespace cohort
