// SPDX-License-Identifier: Apache-2.0
// The graph that a user composes. A Symbol is a list of heads into shared nodes; nodes do not change once an executor
// can see them (SYM-01): changing an attribute or composing makes new nodes.
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
  AttrMap attrs;                                            // as given, operator parameters and __x__ alike
  Attrs parsed;                                             // the operator's own, parsed
  std::vector<Entry> inputs;                                // auxiliary states last
  std::vector<std::shared_ptr<const NodeGraph>> subgraphs;  // which `parsed` has, too (symbol/node_graph.hpp)

  Node() = default;
  Node(const Node &) = default;
  Node &operator=(const Node &) = delete;
  ~Node();  // of a long chain, without recursion

  bool is_variable() const { return op == nullptr; }
  int num_outputs() const { return op ? op->num_outputs(parsed) : 1; }
  int num_visible() const { return op ? op->num_visible(parsed) : 1; }
};

class Symbol {
 public:
  Symbol() = default;
  explicit Symbol(std::vector<Entry> heads) : heads_(std::move(heads)) {}

  static Symbol variable(const std::string &name, const AttrMap &attrs = {});
  // An operator's node. Inputs by position, or by the operator's input names (input_names not empty; same length as
  // inputs); sub-graphs come first, each a symbol of all its outputs. Missing inputs of a layer become variables
  // NAME_ARGUMENT (SYM-05). An empty name is made from the operator's (unique in the process: lower-case name and a
  // counter).
  static Symbol create(const std::string &op, const AttrMap &attrs, const std::string &name,
                       const std::vector<std::string> &input_names, const std::vector<Symbol> &inputs);
  static Symbol group(const std::vector<Symbol> &symbols);

  const std::vector<Entry> &heads() const { return heads_; }
  // All nodes in topological order: depth first from the heads, inputs left to right, each once (SYM-01).
  std::vector<NodePtr> nodes() const;

  std::vector<std::string> list_arguments() const;
  std::vector<std::string> list_auxiliary_states() const;
  std::vector<std::string> list_inputs() const;  // both, interleaved
  std::vector<std::string> list_labels()
      const;  // arguments that the outputs depend on as labels of losses alone (SYM-01)
  std::vector<std::string> list_outputs() const;  // SYM-02
  Symbol internals() const;
  Symbol children() const;                       // empty (no heads) for a variable
  Symbol output(int64_t index) const;            // kInvalidArgument
  Symbol output(const std::string &name) const;  // kName: unknown or ambiguous
  // Variables of these names replaced by symbols of one head each (SYM-13).
  Symbol compose(const std::vector<std::pair<std::string, Symbol>> &replacements, const std::string &name) const;

  std::string name() const;                                    // "" for a group
  const std::string *attribute(const std::string &key) const;  // of the head node; null if none; short names too
  AttrMap attributes() const;                                  // of the head node, `lr_mult` beside `__lr_mult__`
  Symbol with_attributes(const AttrMap &attrs) const;          // kState unless there is one head
  Symbol with_attribute(const std::string &key,
                        const std::string &value) const;  // a new symbol, the head node replaced
  // Node name -> attributes, as attributes() shows them; only non-empty ones.
  std::vector<std::pair<std::string, AttrMap>> all_attributes() const;

  std::string to_json() const;
  static Symbol from_json(const std::string &json, const std::string &source = "symbol");  // any version; kFormat

 private:
  std::vector<Entry> heads_;
};

// The same nodes indexed: what plan and inference work on.
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
  // The variable in whose array the value lies, in whatever shape; -1: in none.
  int variable_of(Input entry) const;
  std::vector<int> written_by(size_t node, Pass pass) const;  // variables
};

// `__init__` texts that the operators give to the variables in their inputs (SYM-08); per node, empty where none.
std::vector<std::string> initial_attributes(const Graph &graph);

// Shapes of all outputs of all nodes; entry [node][output].
struct Inferred {
  std::vector<Shapes> shapes;
  std::vector<Dtypes> dtypes;
  bool shapes_complete = false;
  bool dtypes_complete = false;
};

// Throws kShape if there are too many axes or elements for any array, or a length below 0; unknown ones count as 1.
void check_size(const Shape &shape, const char *what);

// Known shapes and dtypes of variables, by name; a missing or unknown one is inferred, names that are none are skipped,
// `__shape__` and `__dtype__` attributes taking part (SYM-10, 11; a given entry wins over an attribute). Incomplete is
// no error. Contradictions throw kShape / kDtype naming node, expected and found.
void infer_shapes(const Graph &graph, const std::vector<std::pair<std::string, Shape>> &known, Inferred *result);
void infer_dtypes(const Graph &graph, const std::vector<std::pair<std::string, Dtype>> &known, Inferred *result);
// The same for variables given by node index: two variables may share a name (EXE-08); the shape of a node's first
// output may be given, too. What is known of heads takes part.
void infer_shapes_at(const Graph &graph, const std::vector<Shape> &by_node, Inferred *result,
                     const std::vector<Shape> &of_heads = {});
void infer_dtypes_at(const Graph &graph, const std::vector<Dtype> &by_node, Inferred *result,
                     const std::vector<Dtype> &of_heads = {});
// What is known, by node: entries by the name of a variable, those without one in the order of the arguments. kName,
// kInvalidArgument.
template <typename T>
std::vector<T> known_by_node(const Graph &graph, const std::vector<std::pair<std::string, T>> &known, T unknown);
extern template std::vector<Shape> known_by_node(const Graph &, const std::vector<std::pair<std::string, Shape>> &,
                                                 Shape);
extern template std::vector<Dtype> known_by_node(const Graph &, const std::vector<std::pair<std::string, Dtype>> &,
                                                 Dtype);

}  // namespace cohort
