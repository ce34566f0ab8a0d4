// SPDX-License-Identifier: Apache-2.0
// A network as the commands look at it: nodes with shapes and types, and which of its variables are parameters.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tool/command_line.hpp"
#include "tool/tool_handles.hpp"

namespace cohort::tool {

using Shape = std::vector<int64_t>;  // 0: a length that is not known

struct Value {
  std::string name;
  std::optional<Shape> shape;  // none: not even the number of axes is known
  cohort_dtype dtype = COHORT_DTYPE_NONE;

  bool known() const;
  int64_t elements() const;  // of a known shape
  int64_t bytes() const;     // likewise; 0 if the type is not known
};

struct Node {
  enum Kind { kOperator, kInput, kParameter, kAuxiliary };
  struct Source {
    size_t node, output;
  };
  std::string name, op;
  Kind kind = kOperator;
  std::map<std::string, std::string> attrs;
  std::vector<Source> inputs;
  std::map<size_t, Value> outputs;  // those that a user can see, by number
};

// Parameters from a file: arguments and auxiliary states, whether it calls them `arg:NAME` or `NAME`.
struct Params {
  Arrays args, aux;
};

struct Network {
  Symbol symbol;
  std::vector<Node> nodes;  // inputs before those that read them
  std::vector<Node::Source> heads;

  const Value &value(const Node::Source &source) const;
  std::vector<Value> of_kind(Node::Kind kind) const;
  std::vector<Value> outputs() const;
  std::vector<std::string> unknown() const;  // variables without a whole shape
};

// What is known of variables before inference: options --shape and --dtype, and the arrays of --params.
struct Known {
  std::vector<std::pair<std::string, Shape>> shapes;
  std::vector<std::pair<std::string, cohort_dtype>> dtypes;
};
Known known_from(const Arguments &arguments);

Symbol load_symbol(const std::string &path);
Params load_params(const std::string &path, const cohort_symbol *symbol);
Network make_network(Symbol symbol, const Known &known, const Params *params);

// For inference and binding: what is known by name, of the parameters too.
Descs make_descs(const Known &known, const Params *params, const cohort_symbol *symbol);

std::vector<std::string> names_of(const cohort_symbol *symbol, cohort_symbol_list list);
std::vector<std::string> names_of(const cohort_arrays *arrays);
Value value_at(const cohort_descs *descs, size_t index);
Value value_of(const cohort_ndarray *array, const std::string &name);
Shape parse_shape(const std::string &text, const std::string &what);
// "(4, 1, 28, 28)"; "?" where it is not known, and for a length of 0, which is not known either but in an array.
std::string shape_text(const std::optional<Shape> &shape, const char *zero = "?");
nlohmann::ordered_json to_json(const Value &value);
cohort_context parse_context(const std::string &text);
std::vector<cohort_context> parse_contexts(const std::string &text);  // "cpu(0),cpu(1)"

bool is_json(const std::string &path);  // by its first character; a Failure if it cannot be read

// Writes arrays as the end of the file's name says: .params, .npy (one array) or .npz. Which it would be, and whether
// it can be, is asked before there is anything to write; other names are a UsageError.
void check_saving(const std::string &path, size_t num_arrays);
void save_arrays(const cohort_arrays *arrays, const std::string &path);
bool ends_with(const std::string &text, const std::string &end);
std::string extension(const std::string &path);  // ".npz", in small letters; "" if there is none

}  // namespace cohort::tool
