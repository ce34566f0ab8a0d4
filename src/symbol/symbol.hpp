// SPDX-License-Identifier: Apache-2.0
// The graph that a user composes. A Symbol is a list of heads into shared nodes. Nodes are immutable once an executor
// can see them (SYM-01): changing an attribute or composing creates new nodes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "op/op.hpp"

namespace cohort {

struct Node;
class NodeGraph;
using NodePtr = std::shared_ptr<const Node>;

// Output `index` of a node.
struct Entry {
  NodePtr node;
  int index = 0;
};

struct Node {
  const Op *op = nullptr;  // null: a variable
  std::string name;
  AttrMap attrs;                                            // as given: operator parameters and __x__
  Attrs parsed;                                             // the operator's parameters, parsed
  std::vector<Entry> inputs;                                // auxiliary states last
  std::vector<std::shared_ptr<const NodeGraph>> subgraphs;  // also contained in `parsed` (symbol/node_graph.hpp)

  Node() = default;
  Node(const Node &) = default;
  Node &operator=(const Node &) = delete;
  ~Node();  // destroys long chains without recursion

  bool is_variable() const { return op == nullptr; }
  int num_outputs() const { return op ? op->num_outputs(parsed) : 1; }
  int num_visible() const { return op ? op->num_visible(parsed) : 1; }
};

class Symbol {
 public:
  Symbol() = default;
  explicit Symbol(std::vector<Entry> heads) : heads_(std::move(heads)) {}

  static Symbol variable(const std::string &name, const AttrMap &attrs = {});
  // Creates an operator's node. Inputs are given by position, or by name (input_names is not empty and as long as
  // inputs); sub-graphs come first, each a symbol with all its outputs. Missing inputs of a layer become variables
  // NAME_ARGUMENT (SYM-05). An empty name becomes the operator's name in lower case with a number
  // (automatic_names.hpp).
  static Symbol create(const std::string &op, const AttrMap &attrs, const std::string &name,
                       const std::vector<std::string> &input_names, const std::vector<Symbol> &inputs);
  static Symbol group(const std::vector<Symbol> &symbols);

  const std::vector<Entry> &heads() const { return heads_; }
  // All nodes in topological order: depth first from the heads, inputs left to right, each once (SYM-01).
  std::vector<NodePtr> nodes() const;

  std::vector<std::string> list_arguments() const;
  std::vector<std::string> list_auxiliary_states() const;
  std::vector<std::string> list_inputs() const;   // both, interleaved
  std::vector<std::string> list_labels() const;   // arguments used only as labels of losses (SYM-01)
  std::vector<std::string> list_outputs() const;  // SYM-02
  Symbol internals() const;
  Symbol children() const;                       // empty (no heads) for a variable
  Symbol output(int64_t index) const;            // kInvalidArgument
  Symbol output(const std::string &name) const;  // kName: unknown or ambiguous
  // Replaces variables of these names by symbols of one head each (SYM-13).
  Symbol compose(const std::vector<std::pair<std::string, Symbol>> &replacements, const std::string &name) const;

  std::string name() const;                                    // "" for a group
  const std::string *attribute(const std::string &key) const;  // of the head node; null if none; accepts short names
  AttrMap attributes() const;                                  // of the head node, with `lr_mult` beside `__lr_mult__`
  Symbol with_attributes(const AttrMap &attrs) const;          // kState unless there is one head
  // A new symbol with the head node replaced.
  Symbol with_attribute(const std::string &key, const std::string &value) const;
  // Node name -> attributes as attributes() returns them; nodes without any are left out.
  std::vector<std::pair<std::string, AttrMap>> all_attributes() const;

  std::string to_json() const;
  static Symbol from_json(const std::string &json, const std::string &source = "symbol");  // any version; kFormat

 private:
  std::vector<Entry> heads_;
};

// The nodes of a symbol by index, as plan and inference use them.
struct Graph {
  struct Input {
    int node;
    int index;
  };
  std::vector<NodePtr> nodes;              // topological
  std::vector<std::vector<Input>> inputs;  // per node
  std::vector<Input> heads;
  std::vector<int> arguments, auxiliary;  // nodes, in the order of the lists
  std::vector<bool> is_auxiliary;         // per node

  explicit Graph(const Symbol &symbol);
  Graph() = default;
  std::vector<std::string> argument_names() const;
  std::vector<std::string> auxiliary_names() const;
  std::string output_name(const Input &entry) const;  // "fc_output" (SYM-02)
  // The variable whose array holds the value, in any shape; -1: none.
  int variable_of(Input entry) const;
  std::vector<int> written_by(size_t node, PassKind pass) const;  // variables
};

// `__init__` texts that operators set for the variables in their inputs (SYM-08); per node, empty if none.
std::vector<std::string> initial_attributes(const Graph &graph);

// Shapes and types of all outputs of all nodes: [node][output].
struct Inferred {
  std::vector<Shapes> shapes;
  std::vector<Dtypes> dtypes;
  bool shapes_complete = false;
  bool dtypes_complete = false;
};

// Throws kShape if the array would have too many axes or elements, or a negative length; unknown lengths count as 1.
void check_size(const Shape &shape, const char *what);

// Known shapes and dtypes of variables, by name. Missing or unknown ones are inferred; unknown names are ignored;
// `__shape__` and `__dtype__` attributes also count (SYM-10, 11), but given entries override them. An incomplete result
// is not an error. Contradictions throw kShape or kDtype naming node, expected and found.
void infer_shapes(const Graph &graph, const std::vector<std::pair<std::string, Shape>> &known, Inferred *result);
void infer_dtypes(const Graph &graph, const std::vector<std::pair<std::string, Dtype>> &known, Inferred *result);
// Likewise, with variables given by node index, since two variables may share a name (EXE-08). The shape of another
// node's first output, and shapes of heads, may be given, too.
void infer_shapes_at(const Graph &graph, const std::vector<Shape> &by_node, Inferred *result,
                     const std::vector<Shape> &of_heads = {});
void infer_dtypes_at(const Graph &graph, const std::vector<Dtype> &by_node, Inferred *result,
                     const std::vector<Dtype> &of_heads = {});
// Converts known entries to a list by node: named entries go to the variable, unnamed ones to the arguments in order.
// Throws kName, kInvalidArgument.
template <typename T>
std::vector<T> known_by_node(const Graph &graph, const std::vector<std::pair<std::string, T>> &known, T unknown);
extern template std::vector<Shape> known_by_node(const Graph &, const std::vector<std::pair<std::string, Shape>> &,
                                                 Shape);
extern template std::vector<Dtype> known_by_node(const Graph &, const std::vector<std::pair<std::string, Dtype>> &,
                                                 Dtype);

}  // namespace cohort
