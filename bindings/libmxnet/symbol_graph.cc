// SPDX-License-Identifier: Apache-2.0
#include "symbol_graph.hpp"

#include <nlohmann/json.hpp>

namespace cohort_mxnet {

using nlohmann::json;

Graph graph_of(const cohort::Symbol &symbol) {
  const json document = json::parse(symbol.to_json());
  Graph graph;
  for (const json &entry : document.at("nodes")) {
    GraphNode node;
    node.op = entry.at("op").get<std::string>();
    node.name = entry.at("name").get<std::string>();
    if (entry.contains("attrs"))
      for (const auto &attr : entry.at("attrs").items())
        node.attrs.emplace_back(attr.key(), attr.value().get<std::string>());
    for (const json &input : entry.at("inputs"))
      node.inputs.emplace_back(input.at(0).get<size_t>(), input.at(1).get<size_t>());
    node.has_graphs = entry.contains("subgraphs");
    graph.nodes.push_back(std::move(node));
  }
  for (const json &head : document.at("heads"))
    graph.heads.emplace_back(head.at(0).get<size_t>(), head.at(1).get<size_t>());
  return graph;
}

cohort::Symbol variable_with_attr(const cohort::Symbol &symbol, const std::string &key, const std::string &value) {
  json document = json::parse(symbol.to_json());
  json &nodes = document.at("nodes");
  if (nodes.size() != 1 || nodes[0].at("op") != "null") return cohort::Symbol();
  nodes[0]["attrs"][key] = value;
  return cohort::Symbol::from_json(document.dump());
}

cohort::Symbol without_amp_casts(const cohort::Symbol &symbol) {
  json document = json::parse(symbol.to_json());
  const json nodes = document.at("nodes");
  const auto is_cast = [&](size_t node) {
    const json &op = nodes.at(node).at("op");
    return op == "amp_cast" || op == "amp_multicast";
  };
  // An output of a cast is replaced by the input of the same position. Inputs come before nodes that read them.
  std::vector<size_t> place(nodes.size(), 0);
  json kept = json::array(), variables = json::array();
  const auto resolve = [&](json entry) {
    size_t node = entry.at(0).get<size_t>(), output = entry.at(1).get<size_t>();
    while (is_cast(node)) {
      const json &input = nodes.at(node).at("inputs").at(output);
      node = input.at(0).get<size_t>();
      output = input.at(1).get<size_t>();
    }
    entry.at(0) = place.at(node);
    entry.at(1) = output;
    return entry;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (is_cast(i)) continue;
    json node = nodes.at(i);
    for (json &input : node.at("inputs")) input = resolve(input);
    place[i] = kept.size();
    if (node.at("op") == "null") variables.push_back(kept.size());
    kept.push_back(std::move(node));
  }
  if (kept.size() == nodes.size()) return symbol.copy();
  for (json &head : document.at("heads")) head = resolve(head);
  document["nodes"] = std::move(kept);
  document["arg_nodes"] = std::move(variables);
  document.erase("node_row_ptr");
  return cohort::Symbol::from_json(document.dump());
}

}  // namespace cohort_mxnet
