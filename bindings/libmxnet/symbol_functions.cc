// SPDX-License-Identifier: Apache-2.0
// The functions of symbols: making, composing, attributes, names, files.
#include <fstream>
#include <optional>

#include "mxnet/c_api.h"
#include "symbol_graph.hpp"
#include "symbol_handle.hpp"

namespace cohort_mxnet {

namespace {

std::vector<std::shared_ptr<Symbol>> symbols(void *const *handles, size_t num) {
  if (num > 0) require(handles, "the list of symbols");
  std::vector<std::shared_ptr<Symbol>> list;
  for (size_t i = 0; i < num; ++i) list.push_back(from_handle<Symbol>(handles[i]));
  return list;
}

cohort::Symbol graph(const void *handle) { return from_handle<Symbol>(handle)->get(); }

template <typename Make>
int make_symbol(void **out, Make make) {
  return guarded([&] {
    require(out, "out");
    *out = new_symbol(make());
  });
}

std::vector<std::string> names_of(const void *handle, cohort_symbol_list list) {
  const cohort::Symbol symbol = graph(handle);
  return symbol ? symbol.names(list) : std::vector<std::string>();
}

int give_names(const void *handle, cohort_symbol_list list, uint32_t *out_size, const char ***out) {
  return guarded([&] {
    static thread_local Texts texts;
    require(out_size, "out_size"), require(out, "out_str_array");
    *out = texts.assign(names_of(handle, list));
    *out_size = static_cast<uint32_t>(texts.size());
  });
}

// Keys and values, one after the other.
int give_attrs(const void *handle, bool all, uint32_t *out_size, const char ***out) {
  return guarded([&] {
    static thread_local Texts texts;
    require(out_size, "out_size"), require(out, "out");
    const cohort::Symbol symbol = graph(handle);
    std::vector<std::string> list;
    if (symbol) {
      for (const cohort::NodeAttr &attr : symbol.attrs(all)) {
        list.push_back(all ? attr.node + "$" + attr.key : attr.key);
        list.push_back(attr.value);
      }
    }
    *out = texts.assign(std::move(list));
    *out_size = static_cast<uint32_t>(texts.size() / 2);
  });
}

// With the mark that lengths of 0 are lengths, if they are.
std::string json_of(const cohort::Symbol &symbol) {
  std::string text = symbol.to_json();
  const size_t version = text.rfind("\"mxnet_version\"");
  if (is_numpy_shape() && version != std::string::npos) text.insert(version, "\"is_np_shape\": [\"int\", 1], ");
  return text;
}

std::string described(const cohort::Symbol &symbol) {
  if (!symbol) return "Symbol without outputs\n";
  const Graph of_symbol = graph_of(symbol);
  std::string text = "Symbol Outputs:\n";
  const std::vector<std::string> outputs = symbol.list_outputs();
  for (size_t i = 0; i < outputs.size(); ++i) text += "\toutput[" + std::to_string(i) + "]=" + outputs[i] + "\n";
  for (const GraphNode &node : of_symbol.nodes) {
    if (node.op == "null") {
      text += "Variable:" + node.name + "\n";
      continue;
    }
    text += "--------------------\nOp:" + node.op + ", Name=" + node.name + "\nInputs:\n";
    for (size_t i = 0; i < node.inputs.size(); ++i)
      text += "\targ[" + std::to_string(i) + "]=" + of_symbol.nodes.at(node.inputs[i].first).name + "(" +
              std::to_string(node.inputs[i].second) + ")\n";
    if (!node.attrs.empty()) text += "Attrs:\n";
    for (const auto &[key, value] : node.attrs) text += "\t" + key + "=" + value + "\n";
  }
  return text;
}

}  // namespace

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

// ---- making
// --------------------------------------------------------------------------------------------------------------

int MXSymbolCreateAtomicSymbol(AtomicSymbolCreator creator, uint32_t num_param, const char **keys, const char **vals,
                               SymbolHandle *out) {
  return guarded([&] {
    require(out, "out");
    const Operator &op = operator_of(creator);
    if (!op.is_known) fail("operator " + op.name + ": not implemented in Cohort");
    *out = publish(std::make_shared<Symbol>(op.name, text_attrs(num_param, keys, vals)));
  });
}

int MXSymbolCreateVariable(const char *name, SymbolHandle *out) {
  return make_symbol(out, [&] { return cohort::Symbol::variable(&required(name, "name")); });
}

int MXSymbolCreateGroup(uint32_t num_symbols, SymbolHandle *list, SymbolHandle *out) {
  return make_symbol(out, [&] {
    std::vector<cohort::Symbol> graphs;
    for (const auto &symbol : symbols(list, num_symbols)) graphs.push_back(symbol->get());
    return cohort::Symbol::group(graphs);
  });
}

int MXSymbolCreateFromFile(const char *fname, SymbolHandle *out) {
  return make_symbol(out, [&] { return cohort::Symbol::load(&required(fname, "fname")); });
}

int MXSymbolCreateFromJSON(const char *text, SymbolHandle *out) {
  return make_symbol(out, [&] { return cohort::Symbol::from_json(&required(text, "json")); });
}

int MXSymbolFree(SymbolHandle symbol) {
  return guarded([&] { free_handle<Symbol>(symbol); });
}

int MXSymbolCopy(SymbolHandle symbol, SymbolHandle *out) {
  return make_symbol(out, [&] {
    const cohort::Symbol original = graph(symbol);
    return original ? original.copy() : cohort::Symbol();
  });
}

int MXShallowCopySymbol(SymbolHandle src, SymbolHandle *out) {
  return make_symbol(out, [&] { return graph(src); });
}

int MXSymbolCompose(SymbolHandle sym, const char *name, uint32_t num_args, const char **keys, SymbolHandle *args) {
  return guarded([&] {
    const auto inputs = symbols(args, num_args);
    if (keys)
      for (uint32_t i = 0; i < num_args; ++i) require(keys[i], "the name of an input");
    from_handle<Symbol>(sym)->compose(name, inputs, num_args > 0 ? keys : nullptr);
  });
}

int MXSymbolRemoveAmpCast(SymbolHandle sym_handle, SymbolHandle *ret_sym_handle) {
  return make_symbol(ret_sym_handle, [&] { return without_amp_casts(graph(sym_handle)); });
}

int MXGenAtomicSymbolFromSymbol(SymbolHandle sym_handle, SymbolHandle *ret_sym_handle) {
  return guarded([&] {
    require(ret_sym_handle, "ret_sym_handle");
    const cohort::Symbol symbol = graph(sym_handle);
    if (!symbol) fail("a symbol without outputs has no operator");
    const Graph of_symbol = graph_of(symbol);
    for (const auto &head : of_symbol.heads)
      if (head.first != of_symbol.heads[0].first) fail("expected the outputs of one operator, found those of several");
    const GraphNode &node = of_symbol.nodes.at(of_symbol.heads[0].first);
    if (node.op == "null") {
      *ret_sym_handle = new_symbol(cohort::Symbol::variable(node.name));
      return;
    }
    if (node.has_graphs) fail("operator " + node.op + " has graphs and cannot be composed anew");
    *ret_sym_handle = publish(std::make_shared<Symbol>(node.op, node.attrs));
  });
}

// ---- parts
// ---------------------------------------------------------------------------------------------------------------

int MXSymbolGetInternals(SymbolHandle symbol, SymbolHandle *out) {
  return make_symbol(out, [&] { return graph(symbol).internals(); });
}

int MXSymbolGetChildren(SymbolHandle symbol, SymbolHandle *out) {
  return make_symbol(out, [&] { return graph(symbol).children(); });
}

int MXSymbolGetOutput(SymbolHandle symbol, uint32_t index, SymbolHandle *out) {
  return make_symbol(out, [&] { return graph(symbol).output(index); });
}

int MXSymbolGetNumOutputs(SymbolHandle symbol, uint32_t *output_count) {
  return guarded([&] {
    required(output_count, "output_count") = static_cast<uint32_t>(names_of(symbol, COHORT_SYMBOL_OUTPUTS).size());
  });
}

int MXSymbolListArguments(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array) {
  return give_names(symbol, COHORT_SYMBOL_ARGUMENTS, out_size, out_str_array);
}

int MXSymbolListOutputs(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array) {
  return give_names(symbol, COHORT_SYMBOL_OUTPUTS, out_size, out_str_array);
}

int MXSymbolListAuxiliaryStates(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array) {
  return give_names(symbol, COHORT_SYMBOL_AUX, out_size, out_str_array);
}

int NNSymbolListInputNames(SymbolHandle symbol, int option, nn_uint *out_size, const char ***out_str_array) {
  if (option < 0 || option > 2)
    return guarded(
        [&] { fail("expected 0 (all), 1 (arguments) or 2 (auxiliary states), found " + std::to_string(option)); });
  constexpr cohort_symbol_list kLists[] = {COHORT_SYMBOL_INPUTS, COHORT_SYMBOL_ARGUMENTS, COHORT_SYMBOL_AUX};
  return give_names(symbol, kLists[option], out_size, out_str_array);
}

// ---- names and attributes
// ------------------------------------------------------------------------------------------------

int MXSymbolGetName(SymbolHandle symbol, const char **out, int *success) {
  return guarded([&] {
    static thread_local std::string text;
    require(out, "out"), require(success, "success");
    const cohort::Symbol of_handle = graph(symbol);
    const std::optional<std::string> name = of_handle ? of_handle.name() : std::nullopt;
    text = name.value_or("");
    *out = name ? text.c_str() : nullptr;
    *success = name.has_value();
  });
}

int MXSymbolGetAttr(SymbolHandle symbol, const char *key, const char **out, int *success) {
  return guarded([&] {
    static thread_local std::string text;
    require(key, "key"), require(out, "out"), require(success, "success");
    *success = from_handle<Symbol>(symbol)->find_attr(key, text);
    *out = *success ? text.c_str() : nullptr;
  });
}

int MXSymbolSetAttr(SymbolHandle symbol, const char *key, const char *value) {
  return guarded([&] {
    require(key, "key"), require(value, "value");
    from_handle<Symbol>(symbol)->set_attr(key, value);
  });
}

int MXSymbolListAttr(SymbolHandle symbol, uint32_t *out_size, const char ***out) {
  return give_attrs(symbol, true, out_size, out);
}

int MXSymbolListAttrShallow(SymbolHandle symbol, uint32_t *out_size, const char ***out) {
  return give_attrs(symbol, false, out_size, out);
}

// ---- text
// ----------------------------------------------------------------------------------------------------------------

int MXSymbolSaveToFile(SymbolHandle symbol, const char *fname) {
  return guarded([&] {
    require(fname, "fname");
    const cohort::Symbol of_handle = graph(symbol);
    of_handle.save(fname);
    if (!is_numpy_shape()) return;
    std::ofstream file(fname, std::ios::binary | std::ios::trunc);
    file << json_of(of_handle);
    if (!file.flush()) fail(std::string("cannot write '") + fname + "'");
  });
}

int MXSymbolSaveToJSON(SymbolHandle symbol, const char **out_json) {
  return guarded([&] {
    static thread_local std::string text;
    require(out_json, "out_json");
    text = json_of(graph(symbol));
    *out_json = text.c_str();
  });
}

int MXSymbolPrint(SymbolHandle symbol, const char **out_str) {
  return guarded([&] {
    static thread_local std::string text;
    require(out_str, "out_str");
    text = described(graph(symbol));
    *out_str = text.c_str();
  });
}

// ---- the same under the names of the graph library
// ------------------------------------------------------------------------

int NNSymbolCreateAtomicSymbol(OpHandle op, nn_uint num_param, const char **keys, const char **vals,
                               SymbolHandle *out) {
  return MXSymbolCreateAtomicSymbol(op, num_param, keys, vals, out);
}
int NNSymbolCreateVariable(const char *name, SymbolHandle *out) { return MXSymbolCreateVariable(name, out); }
int NNSymbolCreateGroup(nn_uint num_symbols, SymbolHandle *list, SymbolHandle *out) {
  return MXSymbolCreateGroup(num_symbols, list, out);
}
int NNSymbolFree(SymbolHandle symbol) { return MXSymbolFree(symbol); }
int NNSymbolCopy(SymbolHandle symbol, SymbolHandle *out) { return MXSymbolCopy(symbol, out); }
int NNSymbolPrint(SymbolHandle symbol, const char **out_str) { return MXSymbolPrint(symbol, out_str); }
int NNSymbolGetAttr(SymbolHandle symbol, const char *key, const char **out, int *success) {
  return MXSymbolGetAttr(symbol, key, out, success);
}
int NNSymbolSetAttrs(SymbolHandle symbol, nn_uint num_param, const char **keys, const char **values) {
  return guarded([&] {
    const auto target = from_handle<Symbol>(symbol);
    for (const auto &[key, value] : text_attrs(num_param, keys, values)) target->set_attr(key, value);
  });
}
int NNSymbolListAttrs(SymbolHandle symbol, int recursive_option, nn_uint *out_size, const char ***out) {
  return give_attrs(symbol, recursive_option == 0, out_size, out);
}
int NNSymbolListOutputNames(SymbolHandle symbol, nn_uint *out_size, const char ***out_str_array) {
  return MXSymbolListOutputs(symbol, out_size, out_str_array);
}
int NNSymbolGetNumOutputs(SymbolHandle symbol, nn_uint *output_count) {
  return MXSymbolGetNumOutputs(symbol, output_count);
}
int NNSymbolGetInternals(SymbolHandle symbol, SymbolHandle *out) { return MXSymbolGetInternals(symbol, out); }
int NNSymbolGetChildren(SymbolHandle symbol, SymbolHandle *out) { return MXSymbolGetChildren(symbol, out); }
int NNSymbolGetOutput(SymbolHandle symbol, nn_uint index, SymbolHandle *out) {
  return MXSymbolGetOutput(symbol, index, out);
}
int NNSymbolCompose(SymbolHandle sym, const char *name, nn_uint num_args, const char **keys, SymbolHandle *args) {
  return MXSymbolCompose(sym, name, num_args, keys, args);
}

}  // extern "C"
