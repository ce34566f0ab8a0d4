// SPDX-License-Identifier: Apache-2.0
// Compiles the graphs inside a node. The result runs as part of the node's step. Private to src/plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/subprogram.hpp"
#include "symbol/node_graph.hpp"
#include "symbol/symbol.hpp"

namespace cohort::plan {

// Infers shapes and types of everything inside. Throws kShape if they do not follow from the inputs.
void infer_inside(const NodeGraph &inside, const std::vector<TensorSpec> &inputs, const std::string &node,
                  Inferred *inferred);

class NodeCompiler final : public SubgraphCompiler {
 public:
  // Adds the number of compiled steps to *num_steps.
  NodeCompiler(const Node &node, const std::shared_ptr<Device> &device, size_t *num_steps)
      : node_(node), device_(device), num_steps_(*num_steps) {}
  std::unique_ptr<Subprogram> compile(size_t subgraph, const Request &request) const override;

 private:
  const Node &node_;
  const std::shared_ptr<Device> &device_;
  size_t &num_steps_;
};

}  // namespace cohort::plan
