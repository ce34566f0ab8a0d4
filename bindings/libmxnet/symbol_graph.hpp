// SPDX-License-Identifier: Apache-2.0
// The graph of a symbol, read from its JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "symbol_handle.hpp"

namespace cohort_mxnet {

struct GraphNode {
  std::string op;  // "null": a variable
  std::string name;
  TextAttrs attrs;
  std::vector<std::pair<size_t, size_t>> inputs;  // node and output
  bool has_graphs = false;                        // runs graphs of its own, such as the body of a loop
};

struct Graph {
  std::vector<GraphNode> nodes;  // each after its inputs
  std::vector<std::pair<size_t, size_t>> heads;
};

Graph graph_of(const cohort::Symbol &symbol);

// A variable with one more attribute, of any key. Null: the symbol is no variable.
cohort::Symbol variable_with_attr(const cohort::Symbol &symbol, const std::string &key, const std::string &value);

// The symbol without casts that mixed precision has put in.
cohort::Symbol without_amp_casts(const cohort::Symbol &symbol);

}  // namespace cohort_mxnet
