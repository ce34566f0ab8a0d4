// SPDX-License-Identifier: Apache-2.0
// cohort inspect: shows the contents of a network or of a file of arrays.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tool/network.hpp"
#include "tool/printing.hpp"
#include "tool/tool.hpp"

namespace cohort::tool {
namespace {

using nlohmann::ordered_json;

struct Total {
  int64_t arrays = 0, elements = 0, bytes = 0;
  bool whole = true;  // all shapes are known

  explicit Total(const std::vector<ArrayInfo> &values) {
    for (const ArrayInfo &value : values) {
      ++arrays;
      whole = whole && value.known();
      if (!value.known()) continue;
      elements += value.elements();
      bytes += value.bytes();
    }
  }
};

ordered_json list_json(const std::vector<ArrayInfo> &values) {
  ordered_json list = ordered_json::array();
  for (const ArrayInfo &value : values) {
    list.push_back(to_json(value));
    if (value.known()) list.back()["elements"] = value.elements();
  }
  return list;
}

// ---- operators that are missing -------------------------------------------------------------------------------------

constexpr int kMostNested = 64;  // graphs in graphs; deeper ones are ignored

// An operator of the host's own program, which the tool does not know: "Custom 'its name'".
std::string custom_name(const nlohmann::json &node) {
  for (const char *key : {"attrs", "attr", "param"}) {
    if (!node.count(key) || !node[key].is_object() || !node[key].count("op_type")) continue;
    if (node[key]["op_type"].is_string()) return "Custom '" + node[key]["op_type"].get<std::string>() + "'";
  }
  return "Custom";
}

void find_missing(const nlohmann::json &graph, const std::set<std::string> &known,
                  std::map<std::string, std::vector<std::string>> &missing, int depth = 0) {
  if (depth > kMostNested || !graph.is_object() || !graph.count("nodes") || !graph["nodes"].is_array()) return;
  for (const nlohmann::json &node : graph["nodes"]) {
    if (!node.is_object() || !node.count("op") || !node["op"].is_string()) continue;
    std::string op = node["op"];
    const bool is_custom = op == "Custom";
    if (is_custom) op = custom_name(node);
    if (op != "null" && (is_custom || !known.count(op))) {
      missing[op].push_back(node.count("name") && node["name"].is_string() ? node["name"].get<std::string>() : "");
    }
    if (!node.count("subgraphs") || !node["subgraphs"].is_array()) continue;
    for (const nlohmann::json &inner : node["subgraphs"]) find_missing(inner, known, missing, depth + 1);
  }
}

std::map<std::string, std::vector<std::string>> missing_operators(const std::string &path) {
  const std::vector<std::string> names = operator_names();
  const std::set<std::string> known(names.begin(), names.end());
  std::map<std::string, std::vector<std::string>> missing;
  find_missing(parse_symbol(read_text(path)), known, missing);
  return missing;
}

[[noreturn]] void tell_missing(const std::string &path, const std::map<std::string, std::vector<std::string>> &missing,
                               bool as_json) {
  size_t num_nodes = 0;
  ordered_json json;
  json["file"] = path;
  json["missing"] = ordered_json::array();
  TextTable table({false, true, false});
  table.add({"missing", "nodes", "such as"});
  table.line();
  for (const auto &[op, nodes] : missing) {
    num_nodes += nodes.size();
    json["missing"].push_back({{"operator", op}, {"nodes", nodes}});
    table.add({printable(op), std::to_string(nodes.size()), printable(nodes.front())});
  }
  if (as_json) {
    print(json);
  } else {
    print(table.text());
  }
  finish_output();
  throw Failure(path + ": " + plural(missing.size(), "operator") + (missing.size() == 1 ? " is" : " are") +
                " missing, in " + plural(num_nodes, "node"));
}

// ---- memory ---------------------------------------------------------------------------------------------------------

struct MemoryPlan {
  cohort_memory_info memory = COHORT_MEMORY_INFO_INIT;
  std::string text;   // the steps of the plan
  std::string error;  // why there is no plan
};

MemoryPlan plan_of(const Network &network, const GivenShapes &known, const Params *params, const Context &context,
                   bool train) {
  MemoryPlan plan;
  std::map<std::string, std::string> write;
  for (const ArrayInfo &value : network.of_kind(NetworkNode::kParameter)) write[value.name] = "write";
  ExecutorOptions options;
  if (train && !write.empty()) options.grad_req = write;
  try {
    const Executor executor =
        Executor::simple_bind(network.symbol, context, make_descs(known, params, network.symbol), options);
    plan.memory = executor.memory();
    plan.text = executor.debug_text();
  } catch (const Error &error) {
    plan.error = error.what();
  }
  return plan;
}

// The rows of the table; all but the last add up to the total.
std::vector<std::pair<const char *, size_t>> memory_rows(const cohort_memory_info &memory) {
  const size_t work = memory.planned_bytes - std::min(memory.planned_bytes, memory.value_bytes);
  const size_t values = memory.planned_bytes - work;
  return {{"arguments", memory.argument_bytes},
          {"gradients", memory.gradient_bytes},
          {"outputs", memory.output_bytes},
          {"intermediate values", values},
          {"working memory", work},
          {"total", memory.argument_bytes + memory.gradient_bytes + memory.output_bytes + values + work},
          {"values without reuse", memory.intermediate_bytes}};
}

ordered_json plan_json(const MemoryPlan &plan) {
  ordered_json json;
  if (!plan.error.empty()) return json["error"] = plan.error, json;
  json["argument_bytes"] = plan.memory.argument_bytes;
  json["gradient_bytes"] = plan.memory.gradient_bytes;
  json["output_bytes"] = plan.memory.output_bytes;
  json["planned_bytes"] = plan.memory.planned_bytes;
  json["intermediate_bytes"] = plan.memory.intermediate_bytes;
  json["value_bytes"] = plan.memory.value_bytes;
  json["plan"] = plan.text;
  return json;
}

std::string memory_text(const MemoryPlan &inference, const MemoryPlan &training) {
  if (!inference.error.empty()) return "no memory plan: " + inference.error + "\n";
  TextTable table({false, true, true});
  table.add({"memory", "inference", "training"});
  table.line();
  const auto ahead = memory_rows(inference.memory), train = memory_rows(training.memory);
  for (size_t i = 0; i < ahead.size(); ++i) {
    table.add({ahead[i].first, bytes_text(double(ahead[i].second)),
               training.error.empty() ? bytes_text(double(train[i].second)) : "-"});
  }
  return table.text() + (training.error.empty() ? "" : "no plan for training: " + training.error + "\n");
}

// ---- a network ------------------------------------------------------------------------------------------------------

// The parameters of each layer. A shared one belongs to the layer that reads it first, so it is counted once.
std::vector<std::vector<ArrayInfo>> own_parameters(const Network &network) {
  std::vector<std::vector<ArrayInfo>> own(network.nodes.size());
  std::vector<bool> seen(network.nodes.size(), false);
  for (size_t i = 0; i < network.nodes.size(); ++i) {
    for (const NetworkNode::Source &source : network.nodes[i].inputs) {
      const NetworkNode::Kind kind = network.nodes[source.node].kind;
      if ((kind != NetworkNode::kParameter && kind != NetworkNode::kAuxiliary) || seen[source.node]) continue;
      seen[source.node] = true;
      own[i].push_back(network.value({source.node, 0}));
    }
  }
  return own;
}

std::string count_text(const Total &total) {
  if (!total.whole) return "?";
  return total.arrays ? with_commas(total.elements) : "";
}

ordered_json network_json(const Network &network, const std::string &path) {
  const auto own = own_parameters(network);
  const std::vector<ArrayInfo> params = network.of_kind(NetworkNode::kParameter),
                               aux = network.of_kind(NetworkNode::kAuxiliary);
  ordered_json json;
  json["file"] = path;
  json["missing"] = ordered_json::array();
  json["inputs"] = list_json(network.of_kind(NetworkNode::kInput));
  json["outputs"] = list_json(network.outputs());
  json["layers"] = ordered_json::array();
  for (size_t i = 0; i < network.nodes.size(); ++i) {
    const NetworkNode &node = network.nodes[i];
    if (node.kind != NetworkNode::kOperator) continue;
    ordered_json layer, outputs = ordered_json::array(), inputs = ordered_json::array();
    for (const auto &output : node.outputs) outputs.push_back(to_json(output.second));
    for (const NetworkNode::Source &source : node.inputs) inputs.push_back(network.nodes[source.node].name);
    layer["name"] = node.name;
    layer["operator"] = node.op;
    layer["attributes"] = node.attrs;
    layer["inputs"] = inputs;
    layer["outputs"] = outputs;
    const Total total(own[i]);
    if (total.whole) layer["parameters"] = total.elements;
    if (!total.whole) layer["parameters"] = nullptr;
    json["layers"].push_back(layer);
  }
  json["parameters"] = list_json(params);
  json["auxiliary_states"] = list_json(aux);
  const Total all_params(params), all_aux(aux);
  json["totals"] = {{"nodes", network.nodes.size()},        {"layers", json["layers"].size()},
                    {"parameters", all_params.elements},    {"parameter_bytes", all_params.bytes},
                    {"auxiliary_states", all_aux.elements}, {"auxiliary_state_bytes", all_aux.bytes},
                    {"complete", network.unknown().empty()}};
  json["unknown_shapes"] = network.unknown();
  return json;
}

std::string network_text(const Network &network, const std::string &path) {
  const auto own = own_parameters(network);
  TextTable variables({false, false, false});
  for (const ArrayInfo &value : network.of_kind(NetworkNode::kInput)) {
    variables.add({"input   " + printable(value.name), shape_text(value.shape), dtype_text(value.dtype)});
  }
  for (const ArrayInfo &value : network.outputs()) {
    variables.add({"output  " + printable(value.name), shape_text(value.shape), dtype_text(value.dtype)});
  }
  TextTable layers({false, false, false, false, true});
  layers.add({"layer", "operator", "output", "type", "parameters"});
  layers.line();
  size_t num_layers = 0;
  for (size_t i = 0; i < network.nodes.size(); ++i) {
    const NetworkNode &node = network.nodes[i];
    if (node.kind != NetworkNode::kOperator) continue;
    ++num_layers;
    std::string name = printable(node.name), op = printable(node.op), count = count_text(Total(own[i]));
    for (const auto &output : node.outputs) {
      layers.add({name, op, shape_text(output.second.shape), dtype_text(output.second.dtype), count});
      name = op = count = "";
    }
  }
  layers.line();
  const Total params(network.of_kind(NetworkNode::kParameter)), aux(network.of_kind(NetworkNode::kAuxiliary));
  std::string text = printable(path) + ": " + plural(num_layers, "layer") + ", " +
                     plural(network.nodes.size(), "node") + "\n\n" + variables.text() + "\n" + layers.text();
  for (const auto &[what, total] : {std::pair("parameter", &params), std::pair("auxiliary state", &aux)}) {
    text += plural(size_t(total->elements), what) + (total->whole ? "" : " or more") + " in " +
            plural(size_t(total->arrays), "array") + ", " + bytes_text(double(total->bytes)) + "\n";
  }
  const std::vector<std::string> unknown = network.unknown();
  if (!unknown.empty()) {
    std::vector<std::string> inputs;
    for (const ArrayInfo &value : network.of_kind(NetworkNode::kInput)) {
      if (!value.known()) inputs.push_back(value.name);
    }
    if (inputs.empty()) inputs = unknown;
    text += "Not all shapes are known; --shape " + printable(inputs[0]) + "=.. gives that of " + printable(inputs[0]);
    if (inputs.size() > 1) text += ", and " + plural(inputs.size() - 1, "other") + " may be needed";
    text += ".\n";
  }
  return text;
}

void inspect_arrays(const std::string &path, bool as_json) {
  const Arrays arrays = Arrays::load(path);
  const std::vector<std::string> names = arrays.names();
  std::vector<ArrayInfo> values;
  for (size_t i = 0; i < names.size(); ++i) {
    const NDArray array = arrays.array(i);
    if (array) values.push_back(value_of(array, names[i]));
  }
  const Total total(values);
  if (as_json) {
    ordered_json json;
    json["file"] = path;
    json["arrays"] = ordered_json::array();
    int64_t elements = 0;
    for (const ArrayInfo &value : values) {
      json["arrays"].push_back(to_json(value));
      json["arrays"].back()["elements"] = value.elements();
      elements += value.elements();
    }
    json["totals"] = {{"arrays", values.size()}, {"elements", elements}, {"bytes", total.bytes}};
    print(json);
    return;
  }
  TextTable table({false, false, false, true});
  table.add({"array", "shape", "type", "elements"});
  table.line();
  for (const ArrayInfo &value : values) {
    table.add(
        {printable(value.name), shape_text(value.shape, "0"), dtype_text(value.dtype), with_commas(value.elements())});
  }
  table.line();
  print(table.text() + plural(size_t(total.elements), "element") + " in " + plural(values.size(), "array") + ", " +
        bytes_text(double(total.bytes)) + "\n");
}

void inspect(const Arguments &arguments) {
  const std::string &path = arguments.file();
  const bool as_json = arguments.has("--json");
  if (!is_json(path)) {
    for (const char *option : {"--params", "--shape", "--dtype", "--context", "--plan"}) {
      if (arguments.has(option)) throw UsageError(option + std::string(" is only for a symbol"));
    }
    return inspect_arrays(path, as_json);
  }
  const GivenShapes known = known_from(arguments);
  const Context context = parse_context(arguments.one("--context", "cpu(0)"));
  Symbol symbol;
  try {
    symbol = load_symbol(path);
  } catch (const Error &) {
    const auto missing = missing_operators(path);
    if (!missing.empty()) tell_missing(path, missing, as_json);
    throw;
  }
  std::optional<Params> params;
  if (arguments.has("--params")) params = load_params(arguments.one("--params"), symbol);
  const Params *const given = params ? &*params : nullptr;
  const Network network = make_network(std::move(symbol), known, given);
  MemoryPlan inference, training;
  if (network.unknown().empty()) {
    inference = plan_of(network, known, given, context, false);
    training = plan_of(network, known, given, context, true);
  } else {
    inference.error = training.error = "not all shapes are known";
  }
  if (as_json) {
    ordered_json json = network_json(network, path);
    json["memory"] = {{"inference", plan_json(inference)}, {"training", plan_json(training)}};
    print(json);
    return;
  }
  print(network_text(network, path) + "\n" + memory_text(inference, training));
  if (arguments.has("--plan")) print("\n" + inference.text);
}

}  // namespace

Command inspect_command() {
  return {"inspect",
          "FILE",
          "shows the layers of a network, with shapes, types, parameters and memory",
          "FILE is a symbol in JSON, or a file of arrays, which are listed. If Cohort lacks operators of\n"
          "the symbol, all of them are listed with their nodes, and the exit status is 1.\n",
          {kParamsOption,
           kShapeOption,
           kDtypeOption,
           {"--context", "CONTEXT", "the device to plan memory for, such as gpu(0); default cpu(0)"},
           {"--plan", "", "show the steps of the plan for inference, too"},
           kJsonOption},
          inspect};
}

}  // namespace cohort::tool
