// SPDX-License-Identifier: Apache-2.0
// The graph inside a node (op/subgraph.hpp). Created by composing and by reading JSON; compiled by src/plan.
#pragma once

#include <string>

#include "op/subgraph.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

class NodeGraph : public Subgraph {
 public:
  // Throws kInvalidArgument if graphs are nested deeper than the JSON reader accepts.
  explicit NodeGraph(Symbol symbol);

  const Symbol &symbol() const { return symbol_; }   // as it was given
  const Graph &graph() const { return graph_; }      // `symbol` with a copy inserted where an output is a variable
  const std::string &json() const { return json_; }  // of `symbol`, without version
  int num_levels() const { return num_levels_; }     // nesting depth; 1: no graph inside it
  const std::vector<int> &inputs() const { return inputs_; }  // nodes of the graph

  size_t num_inputs() const override { return inputs_.size(); }
  size_t num_outputs() const override { return graph_.heads.size(); }
  bool is_auxiliary(size_t input) const override { return graph_.is_auxiliary[size_t(inputs_[input])]; }
  bool is_written(size_t input, PassKind pass) const override {
    return is_written_[size_t(pass)][size_t(inputs_[input])];
  }
  bool is_random() const override { return is_random_; }
  bool is_stateful() const override { return is_stateful_; }
  void infer_shapes(Shapes *in, Shapes *out) const override;
  void infer_dtypes(Dtypes *in, Dtypes *out) const override;
  double flops(const Shapes &in) const override;

 protected:
  // With inputs in the order of `variables`, all of which the symbol reads.
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

constexpr int kMostLevels = 8;  // nesting depth of graphs

std::string graph_json(const Symbol &symbol);
// The node's graphs as its operator sees them.
Subgraphs subgraphs_of(const Node &node);
// Throws kInvalidArgument unless attribute num_args equals the number of sub-graphs and inputs.
void check_num_args(const Node &node, int num_args, size_t num_inputs);

}  // namespace cohort
