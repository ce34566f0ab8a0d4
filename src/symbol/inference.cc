// SPDX-License-Identifier: Apache-2.0
// Infers the shapes and dtypes of a graph: visits operators, each completing its inputs and outputs, until nothing
// changes.
#include <algorithm>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "symbol/symbol.hpp"

namespace cohort {

constexpr int64_t kMostElements = int64_t(1) << 40;  // of one array; keeps the operators' arithmetic within 64 bits

void check_size(const Shape &shape, const char *what) {
  if (!shape.rank_known()) return;
  if (shape.rank() > kMaxAxes) {
    throw Error(Code::kShape, text(what, ": expected at most ", kMaxAxes, " axes, found ", shape.rank()), what);
  }
  int64_t size = 1;
  for (int64_t length : shape) {
    if (length == Shape::kUnknown || length == 0) continue;
    if (length < 0) throw Error(Code::kShape, text(what, ": expected no length below 0, found ", shape), what);
    if (length > kMostElements / size) {
      throw Error(Code::kShape, text(what, ": expected at most ", kMostElements, " elements, found ", shape), what);
    }
    size *= length;
  }
}

namespace {

bool is_known(const Shape &shape) { return shape.known(); }
bool is_known(Dtype dtype) { return dtype != Dtype::kNone; }

bool merge(Shape &into, const Shape &from, const char *what) {
  if (into == from) return false;
  unify(into, from, what);
  check_size(into, what);
  return true;
}

bool merge(Dtype &into, Dtype from, const char *what) {
  if (into == from) return false;
  unify(into, from, what);
  return true;
}

template <typename V>
void merge_heads(const Graph &graph, const std::vector<V> &of_heads, std::vector<std::vector<V>> *values) {
  for (size_t h = 0; h < of_heads.size(); ++h) {
    const Graph::Input &head = graph.heads[h];
    merge((*values)[size_t(head.node)][size_t(head.index)], of_heads[h], "output");
  }
}

[[noreturn]] void fail_at(const Graph &graph, int at, const Error &e) {
  constexpr size_t kMostNames = 8;
  const Node &node = *graph.nodes[size_t(at)];
  const std::vector<Graph::Input> &inputs = graph.inputs[size_t(at)];
  std::string names;
  for (size_t k = 0; k < inputs.size() && k < kMostNames; ++k) names += (k ? ", " : "") + graph.output_name(inputs[k]);
  if (inputs.size() > kMostNames) names += ", ...";
  throw Error(e.code(), text("node '", node.name, "' (", node.op->name, "): ", e.what(), "; its inputs: ", names),
              node.name);
}

// Nodes that wait for a visit. First all, in topological order; then those of fewest inputs and outputs first, so that
// a node with many is not visited for each step of a chain along which shapes arrive.
class WaitingNodes {
 public:
  explicit WaitingNodes(const Graph &graph) : graph_(graph), is_waiting_(graph.nodes.size(), false) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) add(int(i), 0);
  }
  void add(int node) {
    const size_t width = graph_.inputs[size_t(node)].size() + size_t(graph_.nodes[size_t(node)]->num_outputs());
    size_t level = 0;
    while (level + 1 < std::size(levels_) && width >> level > kNarrow) ++level;
    add(node, level);
  }
  bool take(int *node) {
    for (std::deque<int> &level : levels_) {
      if (level.empty()) continue;
      *node = level.front();
      level.pop_front();
      is_waiting_[size_t(*node)] = false;
      return true;
    }
    return false;
  }

 private:
  static constexpr size_t kNarrow = 8;  // inputs and outputs

  void add(int node, size_t level) {
    if (graph_.nodes[size_t(node)]->is_variable() || is_waiting_[size_t(node)]) return;
    is_waiting_[size_t(node)] = true;
    levels_[level].push_back(node);
  }

  const Graph &graph_;
  std::vector<bool> is_waiting_;
  std::deque<int> levels_[24];  // by the logarithm of their width
};

// Visits nodes, and again whenever another node changed one of their entries.
template <typename V, typename Infer>
bool infer_all(const Graph &graph, std::vector<std::vector<V>> *values, Infer infer) {
  const size_t num_nodes = graph.nodes.size();
  std::vector<std::vector<int>> consumers(num_nodes);
  for (size_t i = 0; i < num_nodes; ++i) {
    for (const Graph::Input &input : graph.inputs[i]) {
      std::vector<int> &list = consumers[size_t(input.node)];
      if (list.empty() || list.back() != int(i)) list.push_back(int(i));
    }
  }
  WaitingNodes waiting(graph);
  std::vector<V> in, out;
  for (int at; waiting.take(&at);) {
    const Node &node = *graph.nodes[size_t(at)];
    const std::vector<Graph::Input> &inputs = graph.inputs[size_t(at)];
    in.clear();
    for (const Graph::Input &input : inputs) in.push_back((*values)[size_t(input.node)][size_t(input.index)]);
    out = (*values)[size_t(at)];
    try {
      infer(node, in, out);
      for (size_t k = 0; k < inputs.size(); ++k) {
        V &value = (*values)[size_t(inputs[k].node)][size_t(inputs[k].index)];
        if (!merge(value, in[k], "input")) continue;
        waiting.add(inputs[k].node);
        for (int consumer : consumers[size_t(inputs[k].node)]) waiting.add(consumer);
      }
      bool changed = false;
      for (size_t k = 0; k < out.size(); ++k) changed |= merge((*values)[size_t(at)][k], out[k], "output");
      if (!changed) continue;
    } catch (const Error &e) {
      fail_at(graph, at, e);
    }
    waiting.add(at);
    for (int consumer : consumers[size_t(at)]) waiting.add(consumer);
  }
  for (const std::vector<V> &outputs : *values) {
    for (const V &value : outputs) {
      if (!is_known(value)) return false;
    }
  }
  return true;
}

// Lengths of 0 and below are to be inferred, as in MXNet's files; an empty shape means any shape.
Shape shape_attribute(const Node &node) {
  const auto found = node.attrs.find("__shape__");
  if (found == node.attrs.end() || is_none(found->second)) return Shape();
  try {
    std::vector<int64_t> lengths;
    for (const std::optional<int64_t> &length : parse_tuple("__shape__", found->second)) {
      lengths.push_back(length && *length > 0 ? *length : Shape::kUnknown);
    }
    if (lengths.empty()) return Shape();
    return Shape(std::move(lengths));
  } catch (const Error &e) {
    throw Error(e.code(), text("variable '", node.name, "': ", e.what()), node.name);
  }
}

Dtype dtype_attribute(const Node &node) {
  const auto found = node.attrs.find("__dtype__");
  if (found == node.attrs.end() || is_none(found->second)) return Dtype::kNone;
  try {
    const int64_t code = parse_int("__dtype__", found->second);
    if (code == -1) return Dtype::kNone;
    for (Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kUint8, Dtype::kInt32, Dtype::kInt8,
                        Dtype::kInt64, Dtype::kBool, Dtype::kBfloat16}) {
      if (int64_t(dtype) == code) return dtype;
    }
    throw Error(Code::kDtype, text("attribute '__dtype__': expected the code of a dtype, found ", code), node.name);
  } catch (const Error &e) {
    throw Error(e.code(), text("variable '", node.name, "': ", e.what()), node.name);
  }
}

template <typename V>
std::vector<V> by_node(const Graph &graph, const std::vector<std::pair<std::string, V>> &known, const V &unknown) {
  std::unordered_map<std::string, const V *> by_name;
  for (const auto &entry : known) by_name[entry.first] = &entry.second;
  std::vector<V> values(graph.nodes.size(), unknown);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i]->is_variable()) continue;
    const auto found = by_name.find(graph.nodes[i]->name);
    if (found != by_name.end()) values[i] = *found->second;
  }
  return values;
}

}  // namespace

void infer_shapes_at(const Graph &graph, const std::vector<Shape> &known, Inferred *result,
                     const std::vector<Shape> &of_heads) {
  std::vector<Shapes> shapes(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = *graph.nodes[i];
    shapes[i].resize(size_t(node.num_outputs()));
    const bool is_known = i < known.size() && known[i].rank_known();
    if (is_known) shapes[i][0] = known[i];
    if (!node.is_variable()) continue;
    const Shape own = shapes[i][0].known() ? Shape() : shape_attribute(node);
    try {
      merge(shapes[i][0], own, "shape");
      check_size(shapes[i][0], "shape");
    } catch (const Error &e) {
      throw Error(e.code(), text("variable '", node.name, "': ", e.what()), node.name);
    }
  }
  merge_heads(graph, of_heads, &shapes);
  const bool complete = infer_all(
      graph, &shapes, [](const Node &node, Shapes &in, Shapes &out) { node.op->infer_shape(node.parsed, in, out); });
  result->shapes = std::move(shapes);
  result->shapes_complete = complete;
}

void infer_dtypes_at(const Graph &graph, const std::vector<Dtype> &known, Inferred *result,
                     const std::vector<Dtype> &of_heads) {
  std::vector<Dtypes> dtypes(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = *graph.nodes[i];
    dtypes[i].assign(size_t(node.num_outputs()), Dtype::kNone);
    if (!node.is_variable()) continue;
    dtypes[i][0] = i < known.size() && known[i] != Dtype::kNone ? known[i] : dtype_attribute(node);
  }
  merge_heads(graph, of_heads, &dtypes);
  const bool complete = infer_all(graph, &dtypes, [](const Node &node, Dtypes &in, Dtypes &out) {
    if (node.op->infer_dtype) {
      node.op->infer_dtype(node.parsed, in, out);
    } else {
      infer_same_dtype(node.parsed, in, out);
    }
  });
  result->dtypes = std::move(dtypes);
  result->dtypes_complete = complete;
}

void infer_shapes(const Graph &graph, const std::vector<std::pair<std::string, Shape>> &known, Inferred *result) {
  infer_shapes_at(graph, by_node(graph, known, Shape()), result);
}

void infer_dtypes(const Graph &graph, const std::vector<std::pair<std::string, Dtype>> &known, Inferred *result) {
  infer_dtypes_at(graph, by_node(graph, known, Dtype::kNone), result);
}

template <typename T>
std::vector<T> known_by_node(const Graph &graph, const std::vector<std::pair<std::string, T>> &known, T unknown) {
  std::vector<T> result(graph.nodes.size(), unknown);
  std::unordered_map<std::string_view, std::vector<size_t>> variables;  // by name
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i]->is_variable()) variables[graph.nodes[i]->name].push_back(i);
  size_t position = 0;
  for (const auto &[name, what] : known) {
    if (name.empty()) {
      if (position == graph.arguments.size()) {
        throw Error(Code::kInvalidArgument,
                    text("known: expected at most ", position, " entries without names, one per argument"), "known");
      }
      result[size_t(graph.arguments[position++])] = what;
      continue;
    }
    const auto found = variables.find(name);
    if (found != variables.end()) {
      for (const size_t i : found->second) result[i] = what;
      continue;
    }
    std::string candidates;
    for (const std::string &argument : graph.argument_names())
      candidates += (candidates.empty() ? "" : ", ") + argument;
    throw Error(Code::kName, text("known: '", name, "' is not an argument or auxiliary state; arguments: ", candidates),
                name);
  }
  return result;
}

template std::vector<Shape> known_by_node(const Graph &, const std::vector<std::pair<std::string, Shape>> &, Shape);
template std::vector<Dtype> known_by_node(const Graph &, const std::vector<std::pair<std::string, Dtype>> &, Dtype);

}  // namespace cohort
