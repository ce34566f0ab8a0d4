// SPDX-License-Identifier: Apache-2.0
// Builds a symbol from the records that an array was made from.
#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "symbol/automatic_names.hpp"
#include "tape/tape.hpp"

namespace cohort {
namespace {

std::string node_name(const std::string &op, size_t number) {
  std::string name = op;
  for (char &c : name) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return name + std::to_string(number);
}

Entry variable(size_t number) {
  auto node = std::make_shared<Node>();
  node->name = "var" + std::to_string(number);
  return {std::move(node), 0};
}

}  // namespace

Symbol Tape::symbol(const NDArray &array) {
  check_idle();
  const Edge head = track(array, "array", 0).edge;
  if (head.record == 0) {
    throw Error(Code::kState, "array: it is not in a recorded graph", "array");
  }
  std::set<uint64_t> reached;
  std::vector<uint64_t> waiting{head.record};
  while (!waiting.empty()) {
    const uint64_t id = waiting.back();
    waiting.pop_back();
    const auto found = records_.find(id);
    if (found == records_.end()) {
      throw Error(Code::kState, "array: a backward pass without retain_graph has released its graph", "array");
    }
    if (!reached.insert(id).second) continue;
    for (const Edge &edge : found->second.edges) {
      if (edge.record) waiting.push_back(edge.record);
    }
  }
  std::map<uint64_t, NodePtr> nodes;
  std::map<std::string, size_t> numbers;
  size_t num_variables = 0;
  for (uint64_t id : reached) {  // oldest first
    const Record &record = records_.at(id);
    if (record.edges.empty() && !record.what.op) continue;  // a variable: its node is made where it is first read
    if (!record.what.op || record.what.backward) {
      throw Error(Code::kUnsupported,
                  text("array: it was made by ", record.name(), ", which cannot be a node of a symbol"), "array");
    }
    auto node = std::make_shared<Node>();
    node->op = record.what.op;
    node->attrs = record.what.attrs;
    if (node->op->has_count_attr()) node->attrs[node->op->variadic] = std::to_string(record.edges.size());
    node->parsed = record.what.parsed;
    node->name = node_name(node->op->name, numbers[node->op->name]++);
    note_given_name(node->name);
    for (const Edge &edge : record.edges) {
      NodePtr *known = edge.record ? &nodes[edge.record] : nullptr;
      if (known && *known) {
        node->inputs.push_back({*known, edge.output});
        continue;
      }
      node->inputs.push_back(variable(num_variables++));
      if (known) *known = node->inputs.back().node;
    }
    nodes[id] = std::move(node);
  }
  if (!nodes[head.record]) return Symbol({variable(0)});
  return Symbol({{nodes[head.record], head.output}});
}

}  // namespace cohort
