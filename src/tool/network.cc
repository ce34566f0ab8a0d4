// SPDX-License-Identifier: Apache-2.0
#include "tool/network.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "tool/printing.hpp"

namespace cohort::tool {
namespace {

using nlohmann::json;

// A pipe cannot be read twice.
bool is_pipe(const std::string &path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

// Without --params, a variable counts as a parameter if its name, or the operator's name for the input, ends like one.
bool sounds_like_parameter(const std::string &name) {
  for (const char *end : {"weight", "bias", "gamma", "beta", "parameters", "alpha", "_scale", "moving_mean",
                          "moving_var", "running_mean", "running_var"}) {
    if (ends_with(name, end)) return true;
  }
  return false;
}

std::string input_name(const NetworkNode &node, size_t index) {
  size_t num_inputs = 0;
  check(cohort_operator_info(node.op.c_str(), nullptr, nullptr, nullptr, &num_inputs, nullptr, nullptr));
  if (index >= num_inputs) return "";
  const char *name = nullptr;
  check(cohort_operator_input(node.op.c_str(), index, &name, nullptr, nullptr));
  return name;
}

std::vector<NetworkNode::Source> parse_sources(const json &list) {
  std::vector<NetworkNode::Source> sources;
  for (const json &entry : list) sources.push_back({entry.at(0).get<size_t>(), entry.at(1).get<size_t>()});
  return sources;
}

Descs infer_outputs(Inferred (Symbol::*infer)(const Descs &, bool) const, const Symbol &symbol,
                    const GivenShapes &known, const Params *params) {
  return (symbol.*infer)(make_descs(known, params, symbol), true).outputs;
}

// Infers the types of a symbol's internals. A variable whose type does not follow is float32, as in binding.
Descs infer_types(const Symbol &internals, GivenShapes known, const Params *params) {
  std::set<std::string> variables, settled;
  for (const std::string &name : internals.names(COHORT_SYMBOL_INPUTS)) variables.insert(name);
  for (;;) {
    Descs types = infer_outputs(&Symbol::infer_dtype, internals, known, params);
    const size_t num = types.num();
    bool all = true;
    for (size_t i = 0; all && i < num; ++i) {
      const ArrayInfo value = value_at(types, i);
      if (value.dtype != COHORT_DTYPE_NONE || !variables.count(value.name) || !settled.insert(value.name).second)
        continue;
      known.dtypes.emplace_back(value.name, COHORT_DTYPE_FLOAT32);
      all = false;
    }
    if (all) return types;
  }
}

// The library has just written this JSON, so it is well formed.
void read_nodes(const Symbol &symbol, std::vector<NetworkNode> &nodes, std::vector<NetworkNode::Source> &heads) {
  const json graph = parse_symbol(symbol.to_json());
  nodes.clear();
  for (const json &entry : graph.at("nodes")) {
    NetworkNode node;
    node.name = entry.at("name").get<std::string>();
    node.op = entry.at("op").get<std::string>();
    if (node.op == "null") {
      node.op.clear();
      node.kind = NetworkNode::kInput;
    }
    if (entry.count("attrs")) node.attrs = entry.at("attrs").get<std::map<std::string, std::string>>();
    node.inputs = parse_sources(entry.at("inputs"));
    nodes.push_back(std::move(node));
  }
  heads = parse_sources(graph.at("heads"));
}

void find_kinds(Network &network, const GivenShapes &known, const Params *params) {
  std::set<std::string> aux, given, inputs;
  for (const std::string &name : network.symbol.list_aux()) aux.insert(name);
  if (params) {
    for (const std::string &name : params->arg.names()) given.insert(name);
  }
  for (const auto &shape : known.shapes) inputs.insert(shape.first);
  std::vector<bool> seen(network.nodes.size(), false);
  for (const NetworkNode &reader : network.nodes) {
    for (size_t i = 0; i < reader.inputs.size(); ++i) {
      NetworkNode &node = network.nodes[reader.inputs[i].node];
      if (node.kind == NetworkNode::kOperator || seen[reader.inputs[i].node]) continue;
      seen[reader.inputs[i].node] = true;
      if (aux.count(node.name)) {
        node.kind = NetworkNode::kAuxiliary;
      } else if (given.count(node.name) || (!params && !inputs.count(node.name) &&
                                            (node.attrs.count("__init__") || sounds_like_parameter(node.name) ||
                                             sounds_like_parameter(input_name(reader, i))))) {
        node.kind = NetworkNode::kParameter;
      }
    }
  }
}

}  // namespace

json parse_symbol(const std::string &text) {
  static const char kHex[] = "0123456789abcdef";
  std::string escaped;
  for (const char c : text) {
    if (uint8_t(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') {
      escaped += "\\u00";
      escaped += kHex[uint8_t(c) >> 4];
      escaped += kHex[uint8_t(c) & 15];
    } else {
      escaped += c;
    }
  }
  return json::parse(escaped, nullptr, false);
}

bool ends_with(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool ArrayInfo::known() const { return shape && std::find(shape->begin(), shape->end(), 0) == shape->end(); }

int64_t ArrayInfo::elements() const {
  int64_t product = 1;
  for (const int64_t length : *shape) {
    if (__builtin_mul_overflow(product, length, &product))
      throw Failure("'" + printable(name) + "': its shape has too many elements");
  }
  return product;
}

int64_t ArrayInfo::bytes() const { return dtype == COHORT_DTYPE_NONE ? 0 : elements() * int64_t(dtype_bytes(dtype)); }

const ArrayInfo &Network::value(const NetworkNode::Source &source) const {
  static const ArrayInfo hidden;
  const auto found = nodes[source.node].outputs.find(source.output);
  return found == nodes[source.node].outputs.end() ? hidden : found->second;
}

std::vector<ArrayInfo> Network::of_kind(NetworkNode::Kind kind) const {
  std::vector<ArrayInfo> values;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == kind) values.push_back(value({i, 0}));
  }
  return values;
}

std::vector<ArrayInfo> Network::outputs() const {
  std::vector<ArrayInfo> values;
  const std::vector<std::string> names = symbol.list_outputs();
  for (size_t i = 0; i < heads.size(); ++i) {
    values.push_back(value(heads[i]));
    values.back().name = names.at(i);
  }
  return values;
}

std::vector<std::string> Network::unknown() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind != NetworkNode::kOperator && !value({i, 0}).known()) names.push_back(nodes[i].name);
  }
  return names;
}

GivenShapes known_from(const Arguments &arguments) {
  GivenShapes known;
  for (const auto &[name, text] : arguments.pairs("--shape")) {
    known.shapes.emplace_back(name, parse_shape(text, "--shape " + name));
  }
  for (const auto &[name, text] : arguments.pairs("--dtype")) {
    try {
      known.dtypes.emplace_back(name, dtype_parse(text));
    } catch (const Error &error) {
      throw UsageError("--dtype " + name + ": " + error.what());
    }
  }
  return known;
}

Symbol load_symbol(const std::string &path) { return Symbol::load(path); }

Params load_params(const std::string &path, const Symbol &symbol) {
  const Arrays file = Arrays::map(path);
  Params params{Arrays(), Arrays()};
  std::set<std::string> aux;
  for (const std::string &name : symbol.list_aux()) aux.insert(name);
  const size_t num = file.num();
  for (size_t i = 0; i < num; ++i) {
    const NDArray array = file.array(i);
    std::string name = file.name(i);
    if (name.empty() || !array)
      throw Failure(path + ": expected parameters with names, array " + std::to_string(i) + " has none");
    const bool is_arg = name.compare(0, 4, "arg:") == 0, is_aux = name.compare(0, 4, "aux:") == 0;
    if (is_arg || is_aux) name.erase(0, 4);
    Arrays &list = is_aux || (!is_arg && aux.count(name)) ? params.aux : params.arg;
    list.set(name, array);
  }
  return params;
}

Descs make_descs(const GivenShapes &known, const Params *params, const Symbol &symbol) {
  Descs descs;
  std::map<std::string, ArrayInfo> all;
  std::set<std::string> variables;
  for (const std::string &name : symbol.names(COHORT_SYMBOL_INPUTS)) variables.insert(name);
  if (params) {
    for (const Arrays *list : {&params->arg, &params->aux}) {
      const std::vector<std::string> names = list->names();
      for (size_t i = 0; i < names.size(); ++i) {
        if (!variables.count(names[i])) continue;
        all[names[i]] = value_of(list->array(i), names[i]);
      }
    }
  }
  for (const auto &[name, shape] : known.shapes) all[name].shape = shape;
  for (const auto &[name, dtype] : known.dtypes) all[name].dtype = dtype;
  for (const auto &entry : all) {
    if (!variables.count(entry.first)) throw Failure("the network has no input '" + printable(entry.first) + "'");
  }
  for (const auto &[name, value] : all) {
    descs.add(value.shape ? Desc(name, *value.shape, value.dtype) : Desc::of_dtype(name, value.dtype));
  }
  return descs;
}

Network make_network(Symbol symbol, const GivenShapes &known, const Params *params) {
  Network network;
  const Symbol internals = symbol.internals();
  const Descs shapes = infer_outputs(&Symbol::infer_shape, internals, known, params);
  const Descs dtypes = infer_types(internals, known, params);

  // The internals have the symbol's nodes in the same order; each of their heads is a visible output.
  std::vector<NetworkNode::Source> seen, heads;
  read_nodes(internals, network.nodes, seen);
  for (size_t i = 0; i < seen.size(); ++i) {
    ArrayInfo value = value_at(shapes, i);
    value.dtype = value_at(dtypes, i).dtype;
    network.nodes[seen[i].node].outputs[seen[i].output] = value;
  }
  std::vector<NetworkNode> nodes;
  read_nodes(symbol, nodes, network.heads);
  bool same = nodes.size() == network.nodes.size();
  for (size_t i = 0; same && i < nodes.size(); ++i) same = nodes[i].name == network.nodes[i].name;
  if (!same) throw Failure("the internals of the symbol are not in its order");
  network.symbol = std::move(symbol);
  find_kinds(network, known, params);
  return network;
}

ArrayInfo value_at(const Descs &descs, size_t index) {
  const Desc desc = descs.at(index);
  return {desc.name, desc.shape, desc.dtype};
}

ArrayInfo value_of(const NDArray &array, const std::string &name) { return {name, array.shape(), array.dtype()}; }

Shape parse_shape(const std::string &text, const std::string &what) {
  std::string inside = text;
  if (inside.size() >= 2 && inside.front() == '(' && inside.back() == ')') inside = inside.substr(1, inside.size() - 2);
  inside.erase(std::remove(inside.begin(), inside.end(), ' '), inside.end());
  if (!inside.empty() && inside.back() == ',') inside.pop_back();
  Shape shape;
  if (inside.empty()) return shape;
  for (const std::string &part : split(inside, ',')) shape.push_back(parse_number(part, 0, INT64_MAX, what));
  if (shape.size() > COHORT_MAX_AXES)
    throw UsageError(what + ": " + std::to_string(shape.size()) + " axes are too many");
  return shape;
}

std::string shape_text(const std::optional<Shape> &shape, const char *zero) {
  if (!shape) return "?";
  std::string text;
  for (const int64_t length : *shape) text += (text.empty() ? "" : ", ") + (length ? std::to_string(length) : zero);
  return "(" + text + (shape->size() == 1 ? ",)" : ")");
}

nlohmann::ordered_json to_json(const ArrayInfo &value) {
  nlohmann::ordered_json json;
  json["name"] = value.name;
  if (value.shape) {
    json["shape"] = *value.shape;
  } else {
    json["shape"] = nullptr;
  }
  if (value.dtype == COHORT_DTYPE_NONE) {
    json["dtype"] = nullptr;
  } else {
    json["dtype"] = dtype_text(value.dtype);
  }
  return json;
}

Context parse_context(const std::string &text) {
  try {
    return Context(text);
  } catch (const Error &error) {
    throw UsageError(std::string("--context: ") + error.what());
  }
}

std::vector<Context> parse_contexts(const std::string &text) {
  std::vector<Context> contexts;
  for (const std::string &part : split(text, ',')) contexts.push_back(parse_context(part));
  return contexts;
}

bool is_json(const std::string &path) {
  if (is_pipe(path)) throw Failure(path + ": expected a file, found a pipe, which cannot be read twice");
  std::ifstream file = open_to_read(path);
  char first = 0;
  file >> first;
  return first == '{';
}

void check_saving(const std::string &path, size_t num_arrays) {
  const std::string end = extension(path);
  if (end != ".params" && end != ".npy" && end != ".npz") {
    throw UsageError("--output: expected a name that ends in .params, .npy or .npz, found '" + path + "'");
  }
  if (end == ".npy" && num_arrays != 1) {
    throw Failure(path + ": a .npy file holds one array, found " + std::to_string(num_arrays) +
                  " arrays: use .npz or .params");
  }
}

void save_arrays(const Arrays &arrays, const std::string &path) {
  check_saving(path, arrays.num());
  const std::string end = extension(path);
  if (end == ".npy") return arrays.save_npy(path);
  if (end == ".npz") return arrays.save_npz(path);
  arrays.save(path);
}

std::string extension(const std::string &path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.find('/', dot) != std::string::npos) return "";
  std::string result = path.substr(dot);
  for (char &c : result) c = char(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace cohort::tool
