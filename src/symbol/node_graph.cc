// SPDX-License-Identifier: Apache-2.0
#include "symbol/node_graph.hpp"

#include <algorithm>

#include "symbol/fused_layer.hpp"

namespace cohort {
namespace {

// Kernels write outputs into arrays of their own, so an output that is a variable needs a copy.
Symbol with_copies(const Symbol &symbol) {
  std::vector<Entry> heads;
  for (const Entry &head : symbol.heads()) {
    heads.push_back(head);
    if (!head.node->is_variable()) continue;
    auto copy = std::make_shared<Node>();
    copy->op = &get_op("_copy");
    copy->name = head.node->name + "_copy";
    copy->parsed = copy->op->parse({});
    copy->inputs = {head};
    heads.back() = {std::move(copy), 0};
  }
  return Symbol(std::move(heads));
}

template <typename T>
std::vector<T> of_nodes(const Graph &graph, const std::vector<int> &nodes, const std::vector<T> &values) {
  std::vector<T> by_node(graph.nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) by_node[size_t(nodes[i])] = values[i];
  return by_node;
}

template <typename T>
void take(const Graph &graph, const std::vector<int> &inputs, const std::vector<std::vector<T>> &found,
          std::vector<T> *in, std::vector<T> *out) {
  for (size_t i = 0; i < inputs.size(); ++i) (*in)[i] = found[size_t(inputs[i])][0];
  for (size_t h = 0; h < graph.heads.size(); ++h) {
    (*out)[h] = found[size_t(graph.heads[h].node)][size_t(graph.heads[h].index)];
  }
}

}  // namespace

NodeGraph::NodeGraph(Symbol symbol)
    : symbol_(std::move(symbol)), graph_(with_copies(symbol_)), json_(graph_json(symbol_)) {
  for (const PassKind pass : {PassKind::kInference, PassKind::kTraining, PassKind::kBackward}) {
    is_written_[size_t(pass)].resize(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const int variable : graph_.written_by(n, pass)) is_written_[size_t(pass)][size_t(variable)] = true;
    }
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node &node = *graph_.nodes[n];
    if (node.is_variable()) {
      inputs_.push_back(int(n));
      continue;
    }
    is_random_ = is_random_ || node.op->is_random(node.parsed);
    is_stateful_ = is_stateful_ || node.op->is_stateful(node.parsed);
    for (const auto &inside : node.subgraphs) num_levels_ = std::max(num_levels_, inside->num_levels() + 1);
  }
  if (num_levels_ <= kMostLevels) return;
  throw Error(Code::kInvalidArgument,
              text("sub-graph: expected at most ", kMostLevels, " levels of nested graphs, found more"), "sub-graph");
}

NodeGraph::NodeGraph(Symbol symbol, const std::vector<Entry> &variables) : NodeGraph(std::move(symbol)) {
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto found = std::find(graph_.nodes.begin(), graph_.nodes.end(), variables[i].node);
    inputs_[i] = int(found - graph_.nodes.begin());
  }
}

void NodeGraph::infer_shapes(Shapes *in, Shapes *out) const {
  Inferred inferred;
  infer_shapes_at(graph_, of_nodes(graph_, inputs_, *in), &inferred, *out);
  take(graph_, inputs_, inferred.shapes, in, out);
}

void NodeGraph::infer_dtypes(Dtypes *in, Dtypes *out) const {
  Inferred inferred;
  infer_dtypes_at(graph_, of_nodes(graph_, inputs_, *in), &inferred, *out);
  take(graph_, inputs_, inferred.dtypes, in, out);
}

double NodeGraph::flops(const Shapes &in) const {
  Inferred inferred;
  infer_shapes_at(graph_, of_nodes(graph_, inputs_, in), &inferred);
  double sum = 0;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node &node = *graph_.nodes[n];
    if (node.is_variable()) continue;
    Shapes inputs;
    for (const Graph::Input &input : graph_.inputs[n]) {
      inputs.push_back(inferred.shapes[size_t(input.node)][size_t(input.index)]);
    }
    constexpr double kCall = 1000;  // overhead of a step, however little it computes
    sum += kCall;
    for (const Shape &output : inferred.shapes[n]) sum += output.known() ? 4 * double(output.size()) : 0;
    const auto known = [](const Shape &shape) { return shape.known(); };
    const bool complete = std::all_of(inputs.begin(), inputs.end(), known) &&
                          std::all_of(inferred.shapes[n].begin(), inferred.shapes[n].end(), known);
    if (complete && node.op->flops) sum += node.op->flops(node.parsed, inputs, inferred.shapes[n]);
  }
  return sum;
}

Subgraphs subgraphs_of(const Node &node) {
  if (is_fused_layer(node)) return {FusedLayer::make(node)};
  return Subgraphs(node.subgraphs.begin(), node.subgraphs.end());
}

void check_num_args(const Node &node, int num_args, size_t num_inputs) {
  const size_t expected = num_inputs + node.subgraphs.size();
  if (node.subgraphs.empty() || node.op->variadic.empty() || size_t(num_args) == expected) return;
  throw Error(Code::kInvalidArgument, text("num_args: expected ", expected, ", found ", num_args), node.op->variadic);
}

}  // namespace cohort
