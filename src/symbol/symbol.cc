// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "op/auxiliary_inputs.hpp"
#include "symbol/automatic_names.hpp"
#include "symbol/node.hpp"
#include "symbol/node_graph.hpp"

namespace cohort {

namespace {

// Nodes whose release is deferred to the destructor that is running on this thread.
thread_local std::vector<Entry> *pending_release = nullptr;

}  // namespace

// Releasing a chain of a million nodes must not recurse a million levels: a nested destructor passes its inputs to the
// outermost one.
Node::~Node() {
  try {
    if (pending_release) {
      for (Entry &input : inputs) pending_release->push_back(std::move(input));
      return;
    }
  } catch (const std::bad_alloc &) {
    return;  // release the rest recursively
  }
  std::vector<Entry> waiting = std::move(inputs);
  pending_release = &waiting;
  while (!waiting.empty()) {
    const Entry last = std::move(waiting.back());
    waiting.pop_back();
  }
  pending_release = nullptr;
}

namespace {

// Keys in their long form. Throws kName for `weight_lr_mult` and, on a variable, for anything but __x__.
AttrMap checked_attrs(const Op *op, const AttrMap &attrs) {
  AttrMap checked;
  for (const auto &attr : attrs) {  // no structured binding: clang 14 cannot capture one in a lambda
    const std::string &key = attr.first, &value = attr.second;
    const std::string stored = long_key(key);
    if (stored != key || is_hidden_key(key)) {
      if (stored == key || attrs.count(stored) == 0) checked[stored] = value;
      continue;
    }
    const bool known = op && (key == op->variadic || std::any_of(op->attrs.begin(), op->attrs.end(),
                                                                 [&](const AttrField &f) { return f.name == key; }));
    const std::string *suffix = hidden_suffix(key);
    if (!known && suffix) {
      throw Error(Code::kName, text("attribute '", key, "': set '__", *suffix, "__' on the input variable itself"),
                  key);
    }
    if (!op) {
      throw Error(Code::kName, text("attribute '", key, "' of a variable: expected the form '__", key, "__'"), key);
    }
    checked[key] = value;
  }
  return checked;
}

std::vector<NodePtr> topological(const std::vector<Entry> &heads) {
  std::vector<NodePtr> order;
  std::unordered_set<const Node *> seen;
  struct Frame {
    NodePtr node;
    size_t next;
  };
  std::vector<Frame> stack;
  for (const Entry &head : heads) {
    if (seen.insert(head.node.get()).second) stack.push_back({head.node, 0});
    while (!stack.empty()) {
      Frame &top = stack.back();
      if (top.next == top.node->inputs.size()) {
        order.push_back(std::move(top.node));
        stack.pop_back();
        continue;
      }
      const NodePtr &input = top.node->inputs[top.next++].node;
      if (seen.insert(input.get()).second) stack.push_back({input, 0});
    }
  }
  return order;
}

std::unordered_set<const Node *> auxiliary_of(const std::vector<NodePtr> &nodes) {
  std::unordered_set<const Node *> auxiliary;
  for (const NodePtr &node : nodes) {
    if (node->is_variable()) continue;
    for (const int i : auxiliary_inputs(*node->op, node->parsed, node->inputs.size())) {
      auxiliary.insert(node->inputs[size_t(i)].node.get());
    }
  }
  return auxiliary;
}

std::string output_name(const Node &node, int index) {
  if (node.is_variable()) return node.name;
  const std::string output = node.op->output_name(node.parsed, index);
  return node.name.empty() ? output : node.name + "_" + output;
}

const Entry &single_head(const Symbol &symbol, const std::string &what) {
  if (symbol.heads().size() != 1) {
    throw Error(Code::kInvalidArgument,
                text(what, ": expected a symbol of one output, found one of ", symbol.heads().size()), what);
  }
  return symbol.heads().front();
}

// The node of all heads; null for a group.
const Node *head_node(const std::vector<Entry> &heads) {
  if (heads.empty()) return nullptr;
  for (const Entry &head : heads) {
    if (head.node != heads.front().node) return nullptr;
  }
  return heads.front().node.get();
}

AttrMap shown_attributes(const AttrMap &attrs) {
  AttrMap shown = attrs;
  for (const std::string &key : hidden_keys()) {
    const auto found = attrs.find("__" + key + "__");
    if (found != attrs.end()) shown[key] = found->second;
  }
  return shown;
}

}  // namespace

// ---- attributes of nodes -------------------------------------------------------------------------------------------

const std::vector<std::string> &hidden_keys() {
  static const std::vector<std::string> &keys =
      *new std::vector<std::string>{"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"};
  return keys;
}

bool is_hidden_key(const std::string &key) {
  return key.size() > 4 && key.compare(0, 2, "__") == 0 && key.compare(key.size() - 2, 2, "__") == 0;
}

std::string long_key(const std::string &key) {
  const auto &keys = hidden_keys();
  return std::find(keys.begin(), keys.end(), key) == keys.end() ? key : "__" + key + "__";
}

const std::string *hidden_suffix(const std::string &key) {
  for (const std::string &suffix : hidden_keys()) {
    const size_t length = suffix.size();
    if (key.size() > length + 1 && key.compare(key.size() - length, length, suffix) == 0 &&
        key[key.size() - length - 1] == '_') {
      return &suffix;
    }
  }
  return nullptr;
}

// State that the node, or a node inside it, keeps between passes must be a variable's array.
void check_auxiliary(const Node &node) {
  const size_t num_inputs = node.inputs.size();
  const auto check = [&](size_t i, const char *what) {
    if (node.inputs[i].node->is_variable()) return;
    const std::string name = node.op->input_names(node.parsed, int(num_inputs))[i];
    throw Error(Code::kInvalidArgument,
                text(what, " '", name, "' of node '", node.name, "' (", node.op->name,
                     "): expected a variable, found the output of node '", node.inputs[i].node->name, "' (",
                     node.inputs[i].node->op->name, ")"),
                node.name);
  };
  for (const int i : auxiliary_inputs(*node.op, node.parsed, num_inputs)) check(size_t(i), "auxiliary state");
  if (!node.op->own_mutates) return;
  for (const int i : node.op->mutated(node.parsed, num_inputs)) check(size_t(i), "input that a sub-graph writes,");
}

// ---- composing -----------------------------------------------------------------------------------------------------

Symbol Symbol::variable(const std::string &name, const AttrMap &attrs) {
  if (name.empty()) throw Error(Code::kInvalidArgument, "variable: expected a name, found none", "name");
  auto node = std::make_shared<Node>();
  node->name = name;
  note_given_name(name);
  node->attrs = checked_attrs(nullptr, attrs);
  return Symbol({Entry{std::move(node), 0}});
}

Symbol Symbol::create(const std::string &op_name, const AttrMap &attrs, const std::string &name,
                      const std::vector<std::string> &input_names, const std::vector<Symbol> &inputs) {
  const Op &op = get_op(op_name);
  auto node = std::make_shared<Node>();
  node->op = &op;
  node->attrs = checked_attrs(&op, attrs);
  const int num_args = op.count_args(node->attrs, inputs.size());
  if (op.has_count_attr()) node->attrs.emplace(op.variadic, std::to_string(num_args));
  node->attrs.erase(kNumInputsAttr);
  const size_t num_subgraphs = op.subgraphs.size();
  if (inputs.size() < num_subgraphs) {
    throw Error(Code::kInvalidArgument,
                text("operator ", op.name, ": expected ", num_subgraphs, " sub-graphs, found ", inputs.size()),
                op.name);
  }
  for (size_t g = 0; g < num_subgraphs; ++g) {
    if (!input_names.empty() && input_names[g] != op.subgraphs[g]) {
      throw Error(
          Code::kName,
          text("operator ", op.name, ": expected sub-graph '", op.subgraphs[g], "', found '", input_names[g], "'"),
          input_names[g]);
    }
    node->subgraphs.push_back(std::make_shared<const NodeGraph>(inputs[g]));
  }
  node->parsed = op.parse(node->attrs, subgraphs_of(*node));
  node->name = name;
  if (node->num_visible() == 0) {
    throw Error(Code::kInvalidArgument, text("operator ", op.name, " has no outputs to make a symbol of"),
                name.empty() ? op.name : name);
  }

  const std::vector<const InputField *> fields = op.input_fields(node->parsed, num_args);
  const std::vector<std::string> names = op.input_names(node->parsed, num_args);
  check_num_args(*node, num_args, names.size());
  if (inputs.size() - num_subgraphs > names.size()) {
    throw Error(Code::kInvalidArgument,
                text("operator ", op.name, ": expected at most ", names.size(), " inputs, found ",
                     inputs.size() - num_subgraphs),
                name.empty() ? op.name : name);
  }
  if (!input_names.empty() && input_names.size() != inputs.size()) {
    throw Error(Code::kInvalidArgument,
                text("operator ", op.name, ": expected a name for each of ", inputs.size(), " inputs, found ",
                     input_names.size()),
                name.empty() ? op.name : name);
  }
  node->inputs.resize(names.size());
  for (size_t i = num_subgraphs; i < inputs.size(); ++i) {
    size_t at = i - num_subgraphs;
    if (!input_names.empty()) {
      at = size_t(std::find(names.begin(), names.end(), input_names[i]) - names.begin());
      if (at == names.size()) {
        std::string known;
        for (const std::string &n : names) known += (known.empty() ? "" : ", ") + n;
        throw Error(Code::kName,
                    text("operator ", op.name, " has no input '", input_names[i],
                         "'; it has: ", known.empty() ? "none" : known),
                    input_names[i]);
      }
      if (node->inputs[at].node) {
        throw Error(Code::kName, text("operator ", op.name, ": input '", input_names[i], "' is given twice"),
                    input_names[i]);
      }
    }
    node->inputs[at] = single_head(inputs[i], names[at]);
  }
  if (name.empty()) {
    std::vector<std::string> missing;
    for (size_t i = 0; i < names.size(); ++i)
      if (!node->inputs[i].node) missing.push_back(names[i]);
    node->name = automatic_name(op_name, missing, inputs);
  } else {
    note_given_name(name);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (node->inputs[i].node) continue;
    auto made = std::make_shared<Node>();
    made->name = node->name + "_" + names[i];
    made->attrs = node->attrs;  // all attributes, as MXNet does (SYM-05)
    if (!fields[i]->init.empty()) made->attrs.emplace("__init__", fields[i]->init);
    node->inputs[i] = Entry{std::move(made), 0};
  }
  check_auxiliary(*node);

  std::vector<Entry> heads;
  const int num_visible = node->num_visible();
  const NodePtr shared = std::move(node);
  for (int i = 0; i < num_visible; ++i) heads.push_back({shared, i});
  return Symbol(std::move(heads));
}

Symbol Symbol::group(const std::vector<Symbol> &symbols) {
  std::vector<Entry> heads;
  for (const Symbol &symbol : symbols) heads.insert(heads.end(), symbol.heads_.begin(), symbol.heads_.end());
  if (heads.empty()) throw Error(Code::kInvalidArgument, "group: expected at least one symbol, found none", "symbols");
  return Symbol(std::move(heads));
}

Symbol Symbol::compose(const std::vector<std::pair<std::string, Symbol>> &replacements, const std::string &name) const {
  if (!name.empty()) note_given_name(name);
  std::map<std::string, Entry> by_name;
  for (const auto &[variable, symbol] : replacements) {
    if (!by_name.emplace(variable, single_head(symbol, variable)).second) {
      throw Error(Code::kName, text("compose: '", variable, "' is replaced twice"), variable);
    }
  }
  std::unordered_map<const Node *, Entry> changed;  // the index matters for replaced variables only
  std::unordered_set<std::string> used;
  const auto moved = [&](const Entry &entry) {
    const auto found = changed.find(entry.node.get());
    if (found == changed.end()) return entry;
    return entry.node->is_variable() ? found->second : Entry{found->second.node, entry.index};
  };
  for (const NodePtr &node : nodes()) {
    if (node->is_variable()) {
      const auto found = by_name.find(node->name);
      if (found != by_name.end()) {
        changed[node.get()] = found->second;
        used.insert(node->name);
        continue;
      }
    }
    const bool renamed = !name.empty() && node == heads_.front().node;
    const auto is_changed = [&](const Entry &input) { return changed.count(input.node.get()) != 0; };
    if (!renamed && std::none_of(node->inputs.begin(), node->inputs.end(), is_changed)) continue;
    auto copy = std::make_shared<Node>(*node);
    if (renamed) copy->name = name;
    for (Entry &input : copy->inputs) input = moved(input);
    if (!copy->is_variable()) check_auxiliary(*copy);
    changed[node.get()] = Entry{std::move(copy), 0};
  }
  for (const auto &entry : by_name) {
    if (used.count(entry.first)) continue;
    std::string known;
    for (const std::string &n : list_inputs()) known += (known.empty() ? "" : ", ") + n;
    throw Error(Code::kName, text("compose: no variable is named '", entry.first, "'; there are: ", known),
                entry.first);
  }
  std::vector<Entry> heads;
  for (const Entry &head : heads_) heads.push_back(moved(head));
  return Symbol(std::move(heads));
}

// ---- lists ---------------------------------------------------------------------------------------------------------

std::vector<NodePtr> Symbol::nodes() const { return topological(heads_); }

std::vector<std::string> Symbol::list_arguments() const { return Graph(*this).argument_names(); }

std::vector<std::string> Symbol::list_auxiliary_states() const { return Graph(*this).auxiliary_names(); }

std::vector<std::string> Symbol::list_inputs() const {
  std::vector<std::string> names;
  for (const NodePtr &node : nodes()) {
    if (node->is_variable()) names.push_back(node->name);
  }
  return names;
}

std::vector<std::string> Symbol::list_labels() const {
  const Graph graph(*this);
  std::vector<bool> needed(graph.nodes.size(), false);
  for (const Graph::Input &head : graph.heads) needed[size_t(head.node)] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node &node = *graph.nodes[n];
    if (!needed[n] || node.is_variable()) continue;
    const bool is_loss = node.op->is_loss(node.parsed);
    const std::vector<std::string> names = node.op->input_names(node.parsed, int(node.inputs.size()));
    for (size_t i = 0; i < graph.inputs[n].size(); ++i) {
      if (!is_loss || i >= names.size() || names[i] != "label") needed[size_t(graph.inputs[n][i].node)] = true;
    }
  }
  std::vector<std::string> labels;
  for (const int argument : graph.arguments) {
    if (!needed[size_t(argument)]) labels.push_back(graph.nodes[size_t(argument)]->name);
  }
  return labels;
}

std::vector<std::string> Symbol::list_outputs() const {
  std::vector<std::string> names;
  for (const Entry &head : heads_) names.push_back(output_name(*head.node, head.index));
  return names;
}

Symbol Symbol::internals() const {
  std::vector<Entry> heads;
  for (const NodePtr &node : nodes()) {
    for (int i = 0; i < node->num_visible(); ++i) heads.push_back({node, i});
  }
  return Symbol(std::move(heads));
}

Symbol Symbol::children() const {
  std::vector<Entry> heads;
  std::unordered_set<const Node *> seen;
  for (const Entry &head : heads_) {
    if (!seen.insert(head.node.get()).second) continue;
    heads.insert(heads.end(), head.node->inputs.begin(), head.node->inputs.end());
  }
  return Symbol(std::move(heads));
}

Symbol Symbol::output(int64_t index) const {
  if (index < 0 || index >= int64_t(heads_.size())) {
    throw Error(Code::kInvalidArgument, text("output: expected an index below ", heads_.size(), ", found ", index),
                "index");
  }
  return Symbol({heads_[size_t(index)]});
}

Symbol Symbol::output(const std::string &name) const {
  const std::vector<std::string> names = list_outputs();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    std::string known;
    for (const std::string &n : names) known += (known.empty() ? "" : ", ") + n;
    throw Error(Code::kName, text("no output is named '", name, "'; there are: ", known), name);
  }
  if (std::find(found + 1, names.end(), name) != names.end()) {
    throw Error(Code::kName, text("more than one output is named '", name, "'"), name);
  }
  return output(found - names.begin());
}

// ---- attributes ----------------------------------------------------------------------------------------------------

std::string Symbol::name() const {
  const Node *node = head_node(heads_);
  return node ? node->name : "";
}

const std::string *Symbol::attribute(const std::string &key) const {
  const Node *node = head_node(heads_);
  if (!node) return nullptr;
  const auto found = node->attrs.find(long_key(key));
  return found == node->attrs.end() ? nullptr : &found->second;
}

AttrMap Symbol::attributes() const {
  const Node *node = head_node(heads_);
  return node ? shown_attributes(node->attrs) : AttrMap();
}

Symbol Symbol::with_attributes(const AttrMap &attrs) const {
  if (heads_.size() != 1) {
    throw Error(Code::kState, text("symbol: expected one head to set attributes of, found ", heads_.size()), "symbol");
  }
  Symbol changed = *this;
  for (const auto &[key, value] : attrs) changed = changed.with_attribute(key, value);
  return changed;
}

Symbol Symbol::with_attribute(const std::string &key, const std::string &value) const {
  const Node *node = head_node(heads_);
  if (!node) throw Error(Code::kState, text("attribute '", key, "': a group of symbols has no attributes"), key);
  auto copy = std::make_shared<Node>(*node);
  for (const auto &entry : checked_attrs(node->op, {{key, value}})) copy->attrs[entry.first] = entry.second;
  if (node->op && !is_hidden_key(long_key(key))) {
    if (key == node->op->variadic) {
      throw Error(Code::kInvalidArgument,
                  text("attribute '", key, "': counts the inputs of the node, which cannot change"), key);
    }
    copy->parsed = node->op->parse(copy->attrs, subgraphs_of(*node));
    const int before = int(node->inputs.size());
    if (node->op->num_inputs(copy->parsed, before) != before || copy->num_visible() != node->num_visible()) {
      throw Error(Code::kInvalidArgument,
                  text("attribute '", key, "': '", value, "' changes the inputs or outputs of node '", node->name,
                       "' (", node->op->name, ")"),
                  key);
    }
  }
  std::vector<Entry> heads;
  const NodePtr shared = std::move(copy);
  for (const Entry &head : heads_) heads.push_back({shared, head.index});
  return Symbol(std::move(heads));
}

std::vector<std::pair<std::string, AttrMap>> Symbol::all_attributes() const {
  const Graph graph(*this);
  const std::vector<std::string> init = initial_attributes(graph);
  std::vector<std::pair<std::string, AttrMap>> all;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    AttrMap attrs = shown_attributes(graph.nodes[i]->attrs);
    if (!init[i].empty()) attrs.emplace("__init__", init[i]);
    if (!attrs.empty()) all.emplace_back(graph.nodes[i]->name, std::move(attrs));
  }
  return all;
}

// ---- the indexed graph ---------------------------------------------------------------------------------------------

Graph::Graph(const Symbol &symbol) : nodes(symbol.nodes()) {
  std::unordered_map<const Node *, int> index;
  index.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) index[nodes[i].get()] = int(i);
  inputs.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    inputs[i].reserve(nodes[i]->inputs.size());
    for (const Entry &input : nodes[i]->inputs) inputs[i].push_back({index[input.node.get()], input.index});
  }
  for (const Entry &head : symbol.heads()) heads.push_back({index[head.node.get()], head.index});
  const std::unordered_set<const Node *> aux = auxiliary_of(nodes);
  is_auxiliary.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    is_auxiliary[i] = aux.count(nodes[i].get()) != 0;
    if (nodes[i]->is_variable()) (is_auxiliary[i] ? auxiliary : arguments).push_back(int(i));
  }
}

std::vector<std::string> Graph::argument_names() const {
  std::vector<std::string> names;
  for (int i : arguments) names.push_back(nodes[size_t(i)]->name);
  return names;
}

std::vector<std::string> Graph::auxiliary_names() const {
  std::vector<std::string> names;
  for (int i : auxiliary) names.push_back(nodes[size_t(i)]->name);
  return names;
}

std::string Graph::output_name(const Input &entry) const {
  return cohort::output_name(*nodes[size_t(entry.node)], entry.index);
}

int Graph::variable_of(Input entry) const {
  while (!nodes[size_t(entry.node)]->is_variable()) {
    if (!nodes[size_t(entry.node)]->op->view) return -1;
    entry = inputs[size_t(entry.node)][0];
  }
  return entry.node;
}

std::vector<int> Graph::written_by(size_t n, PassKind pass) const {
  const Node &node = *nodes[n];
  if (node.is_variable()) return {};
  std::vector<int> variables;
  const bool backward = pass == PassKind::kBackward;
  for (const int input :
       backward ? node.op->gradient_of(node.parsed).writes : node.op->mutated(node.parsed, inputs[n].size(), pass)) {
    const int variable = variable_of(inputs[n][size_t(input)]);
    if (variable >= 0) variables.push_back(variable);
  }
  return variables;
}

std::vector<std::string> initial_attributes(const Graph &graph) {
  std::vector<std::string> init(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = *graph.nodes[i];
    if (node.is_variable()) continue;
    const auto fields = node.op->input_fields(node.parsed, int(node.inputs.size()));
    for (size_t k = 0; k < fields.size(); ++k) {
      const Node &input = *node.inputs[k].node;
      std::string &mine = init[size_t(graph.inputs[i][k].node)];
      if (input.is_variable() && mine.empty() && input.attrs.count("__init__") == 0) mine = fields[k]->init;
    }
  }
  return init;
}

}  // namespace cohort
