// SPDX-License-Identifier: Apache-2.0
// Symbols as MXNet's JSON: reads the forms of 0.8 to 1.9 and updates older ones, writes the form of 1.9. Input is
// untrusted: everything is validated before nodes are created.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "symbol/automatic_names.hpp"
#include "symbol/node.hpp"
#include "symbol/node_graph.hpp"

namespace cohort {
namespace {

constexpr int64_t kCurrentVersion = 10901;       // major * 10000 + minor * 100 + patch
constexpr int64_t kOldestVersion = 800;          // assumed if the file has no version
constexpr int kMostDepth = 5 + 4 * kMostLevels;  // MXNet's own files have 5 levels, and 4 more per nested graph
constexpr int64_t kMostOutputs = 1 << 22;        // of all nodes
// Lists of a symbol name a node's inputs and outputs after the node: a small file could ask for any amount of text.
constexpr uint64_t kMostNameBytes = 1 << 28;
constexpr size_t kMostNamed = 100;  // limit of operators in an error, and of nodes for each

// ---- from a JSON tree to nodes -------------------------------------------------------------------------------------

class SymbolJsonReader;

struct RawNode {
  std::string op, name;
  AttrMap attrs;
  struct Input {
    size_t node;
    int64_t index;
  };
  std::vector<Input> inputs;
  std::vector<std::shared_ptr<SymbolJsonReader>> subgraphs;
};

// Counts over all graphs in the file.
struct Totals {
  int64_t outputs = 0;
  uint64_t name_bytes = 0;
};

class SymbolJsonReader {
 public:
  SymbolJsonReader(const std::string &source, int64_t version, Totals *totals)
      : source_(source), version_(version), totals_(totals) {}

  Symbol read(const Json &tree) {
    scan(tree);
    check_operators();
    return make_symbol();
  }

 private:
  // Checks everything that does not depend on the operators.
  void scan(const Json &tree) {
    check_keys(tree, "the symbol", {"nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"});
    read_version(tree);
    const Json &nodes = member(tree, "nodes", "the symbol");
    if (!nodes.is(Json::Kind::kArray)) refuse("'nodes': expected an array");
    num_nodes_ = nodes.elements.size();
    raw_.reserve(num_nodes_);
    for (const Json &node : nodes.elements) read_node(node);
    check_indices(tree, "arg_nodes", true);
    check_indices(tree, "node_row_ptr", false);
    const Json &heads = member(tree, "heads", "the symbol");
    if (!heads.is(Json::Kind::kArray) || heads.elements.empty()) refuse("'heads': expected an array of at least one");
    for (const Json &head : heads.elements) heads_.push_back(read_input(head, "'heads'"));
  }

  Symbol make_symbol() {
    made_.resize(num_nodes_);
    for (size_t id : sorted(heads_)) make(id);
    std::vector<Entry> entries;
    for (const RawNode::Input &head : heads_) {
      entries.push_back(entry(head, "'heads'"));
      count_names(entries.back().node->name.size(), 1);
    }
    return Symbol(std::move(entries));
  }

  [[noreturn]] void refuse(const std::string &what) const {
    throw Error(Code::kFormat, text(source_, ": ", what), source_);
  }
  [[noreturn]] void refuse(const RawNode &node, const std::string &what) const {
    throw Error(Code::kFormat,
                text(source_, ": node '", node.name, "'", node.op == "null" ? "" : " (" + node.op + ")", ": ", what),
                node.name);
  }

  void check_keys(const Json &object, const std::string &where, const std::vector<std::string> &allowed) const {
    if (!object.is(Json::Kind::kObject)) refuse(text(where, ": expected an object"));
    for (size_t i = 0; i < object.num_keys(); ++i) {
      const std::string &found = object.key(i);
      if (std::find(allowed.begin(), allowed.end(), found) != allowed.end()) continue;
      std::string list;
      for (const std::string &key : allowed) list += (list.empty() ? "" : ", ") + key;
      refuse(text(where, ": expected keys out of ", list, ", found '", found, "'"));
    }
  }

  const Json &member(const Json &object, const char *key, const std::string &where) const {
    const Json *found = object.find(key);
    if (!found) refuse(text(where, ": expected a key '", key, "', found none"));
    return *found;
  }

  // An integer in [0, limit). Errors begin with the parts of `where`, which are text only then: names may be long, and
  // nodes may have many inputs and attributes.
  template <typename... Where>
  int64_t read_index(const Json &value, int64_t limit, const Where &...where) const {
    const bool whole = value.is(Json::Kind::kInteger);
    const int64_t index = whole ? value.integer() : -1;
    if (index < 0 || index >= limit) {
      refuse(text(where..., ": expected a whole number from 0 to ", limit - 1,
                  whole ? text(", found ", index) : std::string()));
    }
    return index;
  }

  void check_indices(const Json &tree, const char *key, bool of_nodes) const {
    const Json *found = tree.find(key);
    if (!found) return;
    if (!found->is(Json::Kind::kArray)) refuse(text("'", key, "': expected an array"));
    for (const Json &index : found->elements)
      read_index(index, of_nodes ? int64_t(num_nodes_) : INT64_MAX, "'", key, "'");
  }

  void read_version(const Json &tree) {
    const Json *attrs = tree.find("attrs");
    if (!attrs) return;
    if (!attrs->is(Json::Kind::kObject)) refuse("'attrs': expected an object");
    const Json *version = attrs->find("mxnet_version");
    if (!version) return;
    if (!version->is(Json::Kind::kArray) || version->elements.size() != 2 ||
        !version->elements[0].is(Json::Kind::kString) || version->elements[0].text != "int") {
      refuse("'mxnet_version': expected [\"int\", number]");
    }
    version_ = read_index(version->elements[1], int64_t(1) << 31, "'mxnet_version'");
    if (version_ > kCurrentVersion) {
      log(LogLevel::kWarning, text(source_, ": written by version ", version_ / 10000, ".", version_ / 100 % 100, ".",
                                   version_ % 100, " of MXNet, which is newer than 1.9.1"));
    }
  }

  template <typename... Where>
  RawNode::Input read_input(const Json &value, const Where &...where) const {
    const std::vector<Json> &parts = value.elements;
    if (!value.is(Json::Kind::kArray) || parts.size() < 2 || parts.size() > 3) {
      refuse(text(where..., ": expected [node, output, version] or [node, output]"));
    }
    if (parts.size() == 3) read_index(parts[2], INT64_MAX, where...);
    return {size_t(read_index(parts[0], int64_t(num_nodes_), where...)), read_index(parts[1], kMaxInputs, where...)};
  }

  template <typename... Where>
  const std::string &read_text(const Json &value, const Where &...where) const {
    if (!value.is(Json::Kind::kString)) refuse(text(where..., ": expected a string"));
    return value.text;
  }

  void read_node(const Json &value) {
    const std::string where = text("nodes[", raw_.size(), "]");
    if (!value.is(Json::Kind::kObject)) refuse(text(where, ": expected an object"));
    RawNode node;
    node.op = read_text(member(value, "op", where), where, ".op");
    node.name = read_text(member(value, "name", where), where, ".name");
    const std::string named = text(where, " '", node.name, "'");
    check_keys(value, named,
               {"op", "name", "attrs", "attr", "param", "inputs", "control_deps", "subgraphs", "backward_source_id"});
    // Attributes override parameters of the same name, which the oldest form listed separately.
    for (const char *key : {"attrs", "attr", "param"}) {
      const Json *attrs = value.find(key);
      if (!attrs) continue;
      if (!attrs->is(Json::Kind::kObject)) refuse(text(named, ".", key, ": expected an object"));
      for (size_t i = 0; i < attrs->num_keys(); ++i) {
        const std::string &attr = attrs->key(i);
        node.attrs.emplace(attr, read_text(attrs->value(i), named, ".", key, ".", attr));
      }
    }
    const Json &inputs = member(value, "inputs", named);
    if (!inputs.is(Json::Kind::kArray)) refuse(text(named, ".inputs: expected an array"));
    for (const Json &input : inputs.elements) node.inputs.push_back(read_input(input, named, ".inputs"));
    if (const Json *deps = value.find("control_deps")) {
      if (!deps->is(Json::Kind::kArray)) refuse(text(named, ".control_deps: expected an array"));
      for (const Json &dep : deps->elements) read_index(dep, int64_t(num_nodes_), named, ".control_deps");
    }
    if (const Json *subgraphs = value.find("subgraphs")) {
      if (!subgraphs->is(Json::Kind::kArray)) refuse(text(named, ".subgraphs: expected an array"));
      for (const Json &subgraph : subgraphs->elements) {
        const std::string where = text(source_, ": ", named, ".subgraphs[", node.subgraphs.size(), "]");
        node.subgraphs.push_back(std::make_shared<SymbolJsonReader>(where, version_, totals_));
        node.subgraphs.back()->scan(subgraph);
      }
    }
    if (node.op == "null") {
      if (!node.inputs.empty()) refuse(node, text("expected a variable without inputs, found ", node.inputs.size()));
      if (!node.subgraphs.empty()) refuse(node, "expected a variable without sub-graphs, found one with sub-graphs");
    }
    raw_.push_back(std::move(node));
  }

  struct Missing {
    std::vector<std::vector<const RawNode *>> nodes;  // by operator, in node order
    std::map<std::string, size_t> places;
  };
  void find_missing(Missing *missing) const {
    for (const RawNode &node : raw_) {
      for (const auto &subgraph : node.subgraphs) subgraph->find_missing(missing);
      if (node.op == "null" || find_op(node.op)) continue;
      const auto place = missing->places.emplace(node.op, missing->nodes.size());
      if (place.second) missing->nodes.emplace_back();
      missing->nodes[place.first->second].push_back(&node);
    }
  }

  // Reports all missing operators in one error, each with its nodes.
  void check_operators() const {
    Missing all;
    find_missing(&all);
    const std::vector<std::vector<const RawNode *>> &missing = all.nodes;
    if (missing.empty()) return;
    std::string list;
    for (size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i) {
      try {
        get_op(missing[i][0]->op);
      } catch (const Error &error) {
        list += text(i == 0 ? "" : "; ", nodes_text(missing[i]), " (", missing[i][0]->op, "): ", error.what());
      }
    }
    throw Error(Code::kFormat, text(source_, ": ", list, more_text(missing.size())), missing[0][0]->name);
  }

  static std::string nodes_text(const std::vector<const RawNode *> &nodes) {
    std::string list = nodes.size() == 1 ? "node " : "nodes ";
    for (size_t i = 0; i < std::min(nodes.size(), kMostNamed); ++i)
      list += text(i == 0 ? "'" : ", '", nodes[i]->name, "'");
    return list + more_text(nodes.size());
  }
  static std::string more_text(size_t count) {
    return count > kMostNamed ? text(" and ", count - kMostNamed, " more") : std::string();
  }

  // The nodes reachable from the heads, in topological order.
  std::vector<size_t> sorted(const std::vector<RawNode::Input> &heads) const {
    enum : char { kNew, kOpen, kDone };
    std::vector<char> state(num_nodes_, kNew);
    struct Frame {
      size_t node, next;
    };
    std::vector<Frame> stack;
    std::vector<size_t> order;
    for (const RawNode::Input &head : heads) {
      if (state[head.node] == kNew) stack.push_back({head.node, 0});
      while (!stack.empty()) {
        Frame &top = stack.back();
        const RawNode &node = raw_[top.node];
        state[top.node] = kOpen;
        if (top.next == node.inputs.size()) {
          state[top.node] = kDone;
          order.push_back(top.node);
          stack.pop_back();
          continue;
        }
        const size_t input = node.inputs[top.next++].node;
        if (state[input] == kOpen) refuse(raw_[input], "expected a graph without cycles, found one through this node");
        if (state[input] == kNew) stack.push_back({input, 0});
      }
    }
    return order;
  }

  template <typename... Where>
  Entry entry(const RawNode::Input &input, const Where &...where) const {
    const std::shared_ptr<Node> &node = made_[input.node];
    const int num_outputs = node->num_outputs();
    if (input.index >= num_outputs) {
      refuse(text(where..., ": expected an output below ", num_outputs, " of node '", node->name, "', found ",
                  input.index));
    }
    return Entry{node, int(input.index)};
  }

  // Files before 1.9.1 may contain `lr_mult` for `__lr_mult__`, and `weight_lr_mult` on a node for the variable of
  // input `weight`.
  AttrMap take_hidden(AttrMap *attrs, const Op *op) const {
    AttrMap hidden;
    if (version_ >= kCurrentVersion) return hidden;
    for (auto it = attrs->begin(); it != attrs->end();) {
      const bool known = op && std::any_of(op->attrs.begin(), op->attrs.end(),
                                           [&](const AttrField &f) { return f.name == it->first; });
      if (!known && (long_key(it->first) != it->first || hidden_suffix(it->first))) {
        hidden.insert(*it);
        it = attrs->erase(it);
      } else {
        ++it;
      }
    }
    return hidden;
  }

  void make(size_t id) {
    RawNode &raw = raw_[id];
    auto node = std::make_shared<Node>();
    node->name = raw.name;
    note_given_name(raw.name);
    node->attrs = std::move(raw.attrs);
    node->op = raw.op == "null" ? nullptr : find_op(raw.op);
    const AttrMap hidden = take_hidden(&node->attrs, node->op);
    for (const auto &[key, value] : hidden) {  // first, because variables created by parse() inherit them
      if (long_key(key) != key) node->attrs[long_key(key)] = value;
    }
    if (node->op) {
      try {
        parse(raw, node.get());
      } catch (const Error &e) {
        if (e.code() == Code::kFormat) throw;
        refuse(raw, e.what());
      }
    }
    place_hidden(node.get(), hidden);
    totals_->outputs += node->num_outputs();
    if (totals_->outputs > kMostOutputs)
      refuse(text("expected at most ", kMostOutputs, " outputs of all nodes, found more"));
    count_names(node->name.size(), uint64_t(node->num_outputs()));
    made_[id] = std::move(node);
  }

  void parse(const RawNode &raw, Node *node) {
    const Op &op = *node->op;
    if (version_ < 905 && (op.name == "argmax" || op.name == "argmin")) {
      const auto axis = node->attrs.find("axis");
      if (axis != node->attrs.end() && axis->second == "-1") node->attrs.erase(axis);
    }
    for (const auto &subgraph : raw.subgraphs) {
      node->subgraphs.push_back(std::make_shared<const NodeGraph>(subgraph->make_symbol()));
    }
    const int num_args = op.count_args(node->attrs, raw.inputs.size() + raw.subgraphs.size());
    if (!op.subgraphs.empty() && !op.variadic.empty()) node->attrs[op.variadic] = std::to_string(num_args);
    node->parsed = op.parse(node->attrs, subgraphs_of(*node));
    if (op.has_count_attr()) node->attrs[op.variadic] = std::to_string(num_args);
    node->attrs.erase(kNumInputsAttr);
    const std::vector<std::string> names = op.input_names(node->parsed, num_args);
    const std::vector<const InputField *> fields = op.input_fields(node->parsed, num_args);
    if (raw.inputs.size() > names.size() || (raw.inputs.size() < names.size() && version_ >= 900)) {
      refuse(raw, text("expected ", names.size(), " inputs, found ", raw.inputs.size()));
    }
    check_num_args(*node, num_args, names.size());
    count_names(node->name.size(), names.size());
    for (const RawNode::Input &input : raw.inputs) {
      node->inputs.push_back(entry(input, "node '", raw.name, "' (", raw.op, ")"));
    }
    if (raw.inputs.size() < names.size()) {
      uint64_t bytes = 0;
      for (const auto &[key, value] : node->attrs) bytes += key.size() + value.size();
      count_names(bytes, names.size() - raw.inputs.size());
    }
    for (size_t i = raw.inputs.size(); i < names.size(); ++i) {  // auxiliary states, absent from files of 0.8
      auto variable = std::make_shared<Node>();
      variable->name = node->name + "_" + names[i];
      variable->attrs = node->attrs;
      node->inputs.push_back(Entry{variable, 0});
      made_.push_back(std::move(variable));
    }
    for (size_t i = 0; i < names.size() && version_ < 904; ++i) {
      if (!fields[i]->init.empty() && node->inputs[i].node->is_variable()) {
        mutable_node(node->inputs[i])->attrs.emplace("__init__", fields[i]->init);
      }
    }
    check_auxiliary(*node);
  }

  void place_hidden(Node *node, const AttrMap &hidden) const {
    std::unordered_map<std::string, size_t> inputs;  // places by name
    for (const auto &[key, value] : hidden) {
      if (long_key(key) != key) continue;
      if (node->is_variable()) {
        node->attrs[key] = value;
        continue;
      }
      if (inputs.empty()) {
        for (const std::string &name : node->op->input_names(node->parsed, int(node->inputs.size())))
          inputs.emplace(name, inputs.size());
      }
      const std::string &suffix = *hidden_suffix(key);
      const auto input = inputs.find(key.substr(0, key.size() - suffix.size() - 1));
      if (input != inputs.end() && node->inputs[input->second].node->is_variable()) {
        mutable_node(node->inputs[input->second])->attrs["__" + suffix + "__"] = value;
      } else {
        node->attrs["__" + key + "__"] = value;
      }
    }
  }

  // Counts the bytes of names that lists of the symbol may have.
  void count_names(uint64_t bytes, uint64_t times) {
    if (times > 0 && bytes > (kMostNameBytes - totals_->name_bytes) / times) {
      refuse(text("expected at most ", kMostNameBytes,
                  " bytes of names, that of a node counted for each of its inputs and outputs, found more"));
    }
    totals_->name_bytes += bytes * times;
  }

  // Nodes created here are not shared yet.
  static Node *mutable_node(const Entry &entry) { return const_cast<Node *>(entry.node.get()); }

  std::string source_;
  int64_t version_;
  Totals *totals_;
  size_t num_nodes_ = 0;
  std::vector<RawNode> raw_;
  std::vector<RawNode::Input> heads_;
  std::vector<std::shared_ptr<Node>> made_;  // by index in the file; variables that the file omitted are appended
};

// ---- from nodes to text --------------------------------------------------------------------------------------------

// Escapes what MXNet's reader has an escape for, and writes other control characters bare, as MXNet does: its reader
// knows no \u. Throws kInvalidArgument if the text is not UTF-8, because the JSON could not be read back.
void append_quoted(std::string *out, const std::string &s, const std::string &node) {
  *out += '"';
  for (size_t i = 0; i < s.size();) {
    const size_t length = utf8_length(s, i);
    if (length == 0) {
      throw Error(Code::kInvalidArgument, text("node '", node, "': expected names and attributes in UTF-8"), node);
    }
    const char c = s[i];
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      *out += '\\';
      *out += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
    } else {
      out->append(s, i, length);
    }
    i += length;
  }
  *out += '"';
}

}  // namespace

Symbol Symbol::from_json(const std::string &json, const std::string &source) {
  Totals totals;
  return SymbolJsonReader(source, kOldestVersion, &totals).read(parse_json(json, source, kMostDepth));
}

std::string graph_json(const Symbol &symbol) {
  const Graph graph(symbol);
  const std::vector<std::string> init = initial_attributes(graph);
  std::string out = "{\n  \"nodes\": [";
  std::string arg_nodes, row_ptr = "0";
  int64_t num_outputs = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = *graph.nodes[i];
    out += i ? ",\n    {\n      \"op\": " : "\n    {\n      \"op\": ";
    append_quoted(&out, node.op ? node.op->name : "null", node.name);
    out += ",\n      \"name\": ";
    append_quoted(&out, node.name, node.name);
    AttrMap attrs = node.attrs;
    if (!init[i].empty()) attrs.emplace("__init__", init[i]);
    if (!attrs.empty()) {
      out += ",\n      \"attrs\": {";
      bool first = true;
      for (const auto &[key, value] : attrs) {
        out += first ? "\n        " : ",\n        ";
        first = false;
        append_quoted(&out, key, node.name);
        out += ": ";
        append_quoted(&out, value, node.name);
      }
      out += "\n      }";
    }
    out += ",\n      \"inputs\": [";
    for (size_t k = 0; k < graph.inputs[i].size(); ++k) {
      const Graph::Input &input = graph.inputs[i][k];
      out += k ? ", [" : "[";  // not a stream: some locales group digits
      out += std::to_string(input.node) + ", " + std::to_string(input.index);
      out += graph.is_auxiliary[size_t(input.node)] ? ", 1]" : ", 0]";
    }
    out += "]";
    for (size_t g = 0; g < node.subgraphs.size(); ++g) {
      out += g ? ",\n" : ",\n      \"subgraphs\": [\n";
      out += node.subgraphs[g]->json();
    }
    out += node.subgraphs.empty() ? "\n    }" : "]\n    }";
    if (node.is_variable()) arg_nodes += (arg_nodes.empty() ? "" : ", ") + std::to_string(i);
    num_outputs += node.num_outputs();
    row_ptr += ", " + std::to_string(num_outputs);
  }
  out += "\n  ],\n  \"arg_nodes\": [" + arg_nodes + "],\n  \"node_row_ptr\": [" + row_ptr + "],\n  \"heads\": [";
  for (size_t i = 0; i < graph.heads.size(); ++i) {
    out += i ? ", [" : "[";
    out += std::to_string(graph.heads[i].node) + ", " + std::to_string(graph.heads[i].index) + ", 0]";
  }
  return out + "]}";
}

std::string Symbol::to_json() const {
  std::string out = graph_json(*this);
  out.pop_back();
  return out + ",\n  \"attrs\": {\"mxnet_version\": [\"int\", " + std::to_string(kCurrentVersion) + "]}\n}\n";
}

}  // namespace cohort
