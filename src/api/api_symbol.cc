// SPDX-License-Identifier: Apache-2.0
#include "cohort/symbol.h"

#include <algorithm>

#include "api/objects.hpp"
#include "ndarray/params.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

const Symbol &symbol_of(const cohort_symbol *symbol, const char *what = "symbol") { return deref(symbol, what).symbol; }

std::vector<Symbol> deref_symbols(cohort_symbol *const *symbols, size_t count, const char *what) {
  require(symbols, count, what);
  std::vector<Symbol> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) result.push_back(symbol_of(symbols[i], what));
  return result;
}

const std::vector<std::string> &names_of(const cohort_symbol *symbol, int32_t list) {
  SymbolObject &object = deref(symbol, "symbol");
  if (list < COHORT_SYMBOL_ARGUMENTS || list > COHORT_SYMBOL_LABELS) {
    throw Error(Code::kInvalidArgument, text("list: expected a COHORT_SYMBOL_ constant, found ", list), "list");
  }
  std::lock_guard<std::mutex> lock(object.texts->mutex);
  auto &names = object.texts->names[list];
  if (!names) {
    const Symbol &s = object.symbol;
    names = list == COHORT_SYMBOL_ARGUMENTS ? s.list_arguments()
            : list == COHORT_SYMBOL_AUX     ? s.list_auxiliary_states()
            : list == COHORT_SYMBOL_OUTPUTS ? s.list_outputs()
            : list == COHORT_SYMBOL_INPUTS  ? s.list_inputs()
                                            : s.list_labels();
  }
  return *names;
}

const std::vector<SymbolAttr> &attrs_of(const cohort_symbol *symbol, int32_t all) {
  SymbolObject &object = deref(symbol, "symbol");
  const bool of_all = to_bool(all, "all");
  std::lock_guard<std::mutex> lock(object.texts->mutex);
  auto &attrs = object.texts->attrs[of_all];
  if (!attrs) {
    SymbolAttrs made;
    if (of_all) {
      made.nodes = object.symbol.all_attributes();
    } else {
      made.nodes.emplace_back(object.symbol.name(), object.symbol.attributes());
    }
    for (const auto &[node, map] : made.nodes) {
      for (const auto &[key, value] : map) made.list.push_back({&node, &key, &value});
    }
    attrs = std::move(made);
  }
  return attrs->list;
}

// The name of each entry, with get(entry).
template <typename T, typename Get>
std::vector<std::pair<std::string, T>> to_known(const cohort_descs *known, Get get) {
  std::vector<std::pair<std::string, T>> result;
  if (known)
    for (const Desc &desc : deref(known, "known")) result.emplace_back(desc.name, get(desc));
  return result;
}

struct InferenceLists {
  DescList args, outputs, aux;
};

template <typename Set>
InferenceLists inference_lists(const Graph &graph, Set set) {
  InferenceLists lists;
  const auto append = [&](DescList *to, std::string name, size_t node, size_t output) {
    to->push_back({std::move(name), Shape(), Dtype::kNone, "NCHW"});
    set(&to->back(), node, output);
  };
  for (const int node : graph.arguments) append(&lists.args, graph.nodes[size_t(node)]->name, size_t(node), 0);
  for (const int node : graph.auxiliary) append(&lists.aux, graph.nodes[size_t(node)]->name, size_t(node), 0);
  for (const auto &head : graph.heads) {
    append(&lists.outputs, graph.output_name(head), size_t(head.node), size_t(head.index));
  }
  return lists;
}

void write_inferred(InferenceLists lists, bool complete, bool partial, int32_t *out_complete, cohort_descs **out_args,
                    cohort_descs **out_outputs, cohort_descs **out_aux) {
  if (!complete && !partial) {
    write_if(out_args, nullptr);
    write_if(out_outputs, nullptr);
    write_if(out_aux, nullptr);
  } else {
    ScopedHandle<cohort_descs> args(std::move(lists.args)), outputs(std::move(lists.outputs)),
        aux(std::move(lists.aux));
    if (out_args) *out_args = args.release();
    if (out_outputs) *out_outputs = outputs.release();
    if (out_aux) *out_aux = aux.release();
  }
  *out_complete = complete;
}

}  // namespace

cohort_error *cohort_symbol_variable(const char *name, const char *const *keys, const char *const *values,
                                     size_t num_attrs, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    const std::string variable = to_text(name, "name");
    if (variable.empty()) throw Error(Code::kInvalidArgument, "name: expected a name, found none", "name");
    *out_symbol = symbol_handle(Symbol::variable(variable, to_attrs(keys, values, num_attrs)));
  });
}

cohort_error *cohort_symbol_create(const char *op, const char *name, const char *const *keys, const char *const *values,
                                   size_t num_attrs, cohort_symbol *const *inputs, const char *const *input_names,
                                   size_t num_inputs, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    const AttrMap attrs = to_attrs(keys, values, num_attrs);
    const std::vector<Symbol> symbols = deref_symbols(inputs, num_inputs, "inputs");
    const auto names = input_names ? to_texts(input_names, num_inputs, "input_names") : std::vector<std::string>();
    *out_symbol = symbol_handle(Symbol::create(to_text(op, "op"), attrs, to_text_or_empty(name), names, symbols));
  });
}

cohort_error *cohort_symbol_group(cohort_symbol *const *symbols, size_t num_symbols, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    const std::vector<Symbol> parts = deref_symbols(symbols, num_symbols, "symbols");
    if (parts.empty()) throw Error(Code::kInvalidArgument, "symbols: expected at least one, found none", "symbols");
    *out_symbol = symbol_handle(Symbol::group(parts));
  });
}

void cohort_symbol_free(cohort_symbol *symbol) {
  const CallScope inside;
  free_handle(symbol);
}

cohort_error *cohort_symbol_copy(const cohort_symbol *symbol, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    *out_symbol = symbol_handle(symbol_of(symbol));  // nodes never change, so sharing them is as good as copying
  });
}

cohort_error *cohort_symbol_compose(const cohort_symbol *symbol, const char *const *names, cohort_symbol *const *inputs,
                                    size_t num_inputs, const char *name, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    const Symbol &source = symbol_of(symbol);
    const std::vector<Symbol> symbols = deref_symbols(inputs, num_inputs, "inputs");
    std::vector<std::string> variables;
    if (names) {
      variables = to_texts(names, num_inputs, "names");
    } else {
      variables = source.list_arguments();
      if (variables.size() < num_inputs) {
        throw Error(Code::kInvalidArgument,
                    text("inputs: expected at most ", variables.size(), ", one per argument, found ", num_inputs),
                    "inputs");
      }
    }
    std::vector<std::pair<std::string, Symbol>> replacements;
    for (size_t i = 0; i < num_inputs; ++i) replacements.emplace_back(variables[i], symbols[i]);
    *out_symbol = symbol_handle(source.compose(replacements, to_text_or_empty(name)));
  });
}

cohort_error *cohort_symbol_internals(const cohort_symbol *symbol, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    *out_symbol = symbol_handle(symbol_of(symbol).internals());
  });
}

cohort_error *cohort_symbol_children(const cohort_symbol *symbol, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    Symbol children = symbol_of(symbol).children();
    *out_symbol = children.heads().empty() ? nullptr : symbol_handle(std::move(children));
  });
}

cohort_error *cohort_symbol_output(const cohort_symbol *symbol, size_t index, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    const Symbol &source = symbol_of(symbol);
    check_index(index, source.heads().size(), "index");
    *out_symbol = symbol_handle(source.output(int64_t(index)));
  });
}

cohort_error *cohort_symbol_output_named(const cohort_symbol *symbol, const char *name, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    const std::string wanted = to_text(name, "name");
    const std::vector<std::string> &names = names_of(symbol, COHORT_SYMBOL_OUTPUTS);
    const size_t index = deref(symbol, "symbol")
                             .texts->outputs.look_up(
                                 names.size(), [&](size_t i) -> const std::string & { return names[i]; }, wanted,
                                 "the outputs of the symbol");
    const Symbol &source = symbol_of(symbol);
    *out_symbol = symbol_handle(index < names.size() ? source.output(int64_t(index)) : source.output(wanted));
  });
}

cohort_error *cohort_symbol_num_nodes(const cohort_symbol *symbol, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = symbol_of(symbol).nodes().size();
  });
}

cohort_error *cohort_symbol_num_names(const cohort_symbol *symbol, int32_t list, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = names_of(symbol, list).size();
  });
}

cohort_error *cohort_symbol_name_at(const cohort_symbol *symbol, int32_t list, size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    const std::vector<std::string> &names = names_of(symbol, list);
    check_index(index, names.size(), "index");
    *out_name = names[index].c_str();
  });
}

cohort_error *cohort_symbol_name(const cohort_symbol *symbol, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    const Symbol &source = symbol_of(symbol);
    *out_name = source.heads().size() == 1 ? source.heads()[0].node->name.c_str() : nullptr;
  });
}

cohort_error *cohort_symbol_attr(const cohort_symbol *symbol, const char *key, const char **out_value) {
  return guard([&] {
    require(out_value, "out_value");
    const Symbol &source = symbol_of(symbol);
    const std::string name = to_text(key, "key");
    const std::string *value = source.heads().size() == 1 ? source.attribute(name) : nullptr;
    *out_value = value ? value->c_str() : nullptr;
  });
}

cohort_error *cohort_symbol_set_attrs(cohort_symbol *symbol, const char *const *keys, const char *const *values,
                                      size_t num_attrs) {
  return guard([&] {
    SymbolObject &object = deref(symbol, "symbol");
    object = SymbolObject{object.symbol.with_attributes(to_attrs(keys, values, num_attrs))};
  });
}

cohort_error *cohort_symbol_num_attrs(const cohort_symbol *symbol, int32_t all, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = attrs_of(symbol, all).size();
  });
}

cohort_error *cohort_symbol_attr_at(const cohort_symbol *symbol, int32_t all, size_t index, const char **out_node,
                                    const char **out_key, const char **out_value) {
  return guard([&] {
    const std::vector<SymbolAttr> &attrs = attrs_of(symbol, all);
    check_index(index, attrs.size(), "index");
    write_if(out_node, attrs[index].node->c_str());
    write_if(out_key, attrs[index].key->c_str());
    write_if(out_value, attrs[index].value->c_str());
  });
}

cohort_error *cohort_symbol_infer_shape(const cohort_symbol *symbol, const cohort_descs *known, int32_t partial,
                                        int32_t *out_complete, cohort_descs **out_args, cohort_descs **out_outputs,
                                        cohort_descs **out_aux) {
  return guard([&] {
    require(out_complete, "out_complete");
    const bool allow_partial = to_bool(partial, "partial");
    const Graph graph(symbol_of(symbol));
    Inferred inferred;
    const auto shape_of = [](const Desc &desc) { return unknown_from_zero(desc.shape); };
    infer_shapes_at(graph, known_by_node(graph, to_known<Shape>(known, shape_of), Shape()), &inferred);
    write_inferred(inference_lists(graph, [&](Desc *desc, size_t node,
                                              size_t output) { desc->shape = inferred.shapes[node][output]; }),
                   inferred.shapes_complete, allow_partial, out_complete, out_args, out_outputs, out_aux);
  });
}

cohort_error *cohort_symbol_infer_dtype(const cohort_symbol *symbol, const cohort_descs *known, int32_t partial,
                                        int32_t *out_complete, cohort_descs **out_args, cohort_descs **out_outputs,
                                        cohort_descs **out_aux) {
  return guard([&] {
    require(out_complete, "out_complete");
    const bool allow_partial = to_bool(partial, "partial");
    const Graph graph(symbol_of(symbol));
    Inferred inferred;
    const auto dtype_of = [](const Desc &desc) { return desc.dtype; };
    infer_dtypes_at(graph, known_by_node(graph, to_known<Dtype>(known, dtype_of), Dtype::kNone), &inferred);
    write_inferred(inference_lists(graph, [&](Desc *desc, size_t node,
                                              size_t output) { desc->dtype = inferred.dtypes[node][output]; }),
                   inferred.dtypes_complete, allow_partial, out_complete, out_args, out_outputs, out_aux);
  });
}

cohort_error *cohort_symbol_from_json(const char *json, size_t bytes, cohort_symbol **out_symbol) {
  return guard([&] {
    require(json, "json");
    require(out_symbol, "out_symbol");
    *out_symbol = symbol_handle(Symbol::from_json(std::string(json, bytes)));
  });
}

cohort_error *cohort_symbol_to_json(const cohort_symbol *symbol, const char **out_json) {
  return guard([&] {
    require(out_json, "out_json");
    SymbolObject &object = deref(symbol, "symbol");
    std::lock_guard<std::mutex> lock(object.texts->mutex);
    if (!object.texts->json) object.texts->json = object.symbol.to_json();
    *out_json = object.texts->json->c_str();
  });
}

cohort_error *cohort_symbol_load(const char *path, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    const std::string file = to_text(path, "path");
    *out_symbol = symbol_handle(Symbol::from_json(read_file(file), file));
  });
}

cohort_error *cohort_symbol_save(const cohort_symbol *symbol, const char *path) {
  return guard([&] {
    const std::string json = symbol_of(symbol).to_json();
    write_file(to_text(path, "path"), json.data(), json.size());
  });
}
