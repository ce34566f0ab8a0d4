// SPDX-License-Identifier: Apache-2.0
// A graph inside a node (op/subgraph.hpp) as this room has it: composing and reading JSON make them, src/plan compiles
// them.
#pragma once

#include <string>

#include "op/subgraph.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

class NodeGraph : public Subgraph {
 public:
  // Throws kInvalidArgument where graphs are nested more deeply than JSON that we read may be.
  explicit NodeGraph(Symbol symbol);

  const Symbol &symbol() const { return symbol_; }  // as it was given
  const Graph &graph() const { return graph_; }  // each output is that of an operator: where it was a variable, a copy
  const std::string &json() const { return json_; }           // of `symbol`, without version
  int num_levels() const { return num_levels_; }              // 1: there is no graph inside it
  const std::vector<int> &inputs() const { return inputs_; }  // nodes of the graph

  size_t num_inputs() const override { return inputs_.size(); }
  size_t num_outputs() const override { return graph_.heads.size(); }
  bool is_auxiliary(size_t input) const override { return graph_.is_auxiliary[size_t(inputs_[input])]; }
  bool is_written(size_t input, Pass pass) const override { return is_written_[size_t(pass)][size_t(inputs_[input])]; }
  bool is_random() const override { return is_random_; }
  bool is_stateful() const override { return is_stateful_; }
  void infer_shapes(Shapes *in, Shapes *out) const override;
  void infer_dtypes(Dtypes *in, Dtypes *out) const override;
  double flops(const Shapes &in) const override;

 protected:
  // With its inputs in the order of `variables`, each of which it reads.
  NodeGraph(Symbol symbol, const std::vector<Entry> &variables);

 private:
  Symbol symbol_;
  Graph graph_;
  std::string json_;
  std::vector<int> inputs_;
  std::vector<bool> is_written_[kNumPasses];  // per node
  int num_levels_ = 1;
  bool is_random_ = false, is_stateful_ = false;
};

constexpr int kMostLevels = 8;  // of graphs in graphs

std::string graph_json(const Symbol &symbol);
// What the operator of a node is told of the node's graphs.
Subgraphs subgraphs_of(const Node &node);
// Throws kInvalidArgument unless attribute num_args says how many there are.
void check_num_args(const Node &node, int num_args, size_t num_inputs);

}  // namespace cohort
