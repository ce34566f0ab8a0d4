// SPDX-License-Identifier: Apache-2.0
// A network as the commands need it: nodes with shapes and types, and which of its variables are parameters.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cohort.hpp"
#include "tool/command_line.hpp"

namespace cohort::tool {

struct ArrayInfo {
  std::string name;
  std::optional<Shape> shape;  // none: not even the number of axes is known; 0: a length that is not known
  cohort_dtype dtype = COHORT_DTYPE_NONE;

  bool known() const;
  int64_t elements() const;  // of a known shape
  int64_t bytes() const;     // likewise; 0 if the type is not known
};

struct NetworkNode {
  enum Kind { kOperator, kInput, kParameter, kAuxiliary };
  struct Source {
    size_t node, output;
  };
  std::string name, op;
  Kind kind = kOperator;
  std::map<std::string, std::string> attrs;
  std::vector<Source> inputs;
  std::map<size_t, ArrayInfo> outputs;  // visible outputs by number
};

// A symbol's JSON, of which MXNet and the library write most control characters bare; discarded if it is not well
// formed.
nlohmann::json parse_symbol(const std::string &text);

struct Network {
  Symbol symbol;
  std::vector<NetworkNode> nodes;  // a node comes after its inputs
  std::vector<NetworkNode::Source> heads;

  const ArrayInfo &value(const NetworkNode::Source &source) const;
  std::vector<ArrayInfo> of_kind(NetworkNode::Kind kind) const;
  std::vector<ArrayInfo> outputs() const;
  std::vector<std::string> unknown() const;  // variables whose shape is not completely known
};

// Shapes and types of variables from the options --shape and --dtype.
struct GivenShapes {
  std::vector<std::pair<std::string, Shape>> shapes;
  std::vector<std::pair<std::string, cohort_dtype>> dtypes;
};
GivenShapes known_from(const Arguments &arguments);

Symbol load_symbol(const std::string &path);
// Parameters from a file, named `arg:NAME` and `aux:NAME` or just `NAME` there.
Params load_params(const std::string &path, const Symbol &symbol);
Network make_network(Symbol symbol, const GivenShapes &known, const Params *params);

// The given shapes and types and those of the parameters, for shape inference and binding.
Descs make_descs(const GivenShapes &known, const Params *params, const Symbol &symbol);

ArrayInfo value_at(const Descs &descs, size_t index);
ArrayInfo value_of(const NDArray &array, const std::string &name);
Shape parse_shape(const std::string &text, const std::string &what);
// "(4, 1, 28, 28)"; "?" if the shape is not known. `zero` stands for a length of 0: it is unknown, except in an array.
std::string shape_text(const std::optional<Shape> &shape, const char *zero = "?");
nlohmann::ordered_json to_json(const ArrayInfo &value);
Context parse_context(const std::string &text);
std::vector<Context> parse_contexts(const std::string &text);  // "cpu(0),cpu(1)"

bool is_json(const std::string &path);  // by its first character; a Failure if the file cannot be read

// save_arrays() writes arrays in the format that the end of the file's name says: .params, .npy (one array) or .npz.
// check_saving() tells before that whether it will work: a UsageError for other names, a Failure for several arrays in
// .npy.
void check_saving(const std::string &path, size_t num_arrays);
void save_arrays(const Arrays &arrays, const std::string &path);
bool ends_with(const std::string &text, const std::string &end);
std::string extension(const std::string &path);  // ".npz", in lower case; "" if there is none

}  // namespace cohort::tool
