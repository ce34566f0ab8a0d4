/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_symbols.hpp
 * Symbols: networks. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_SYMBOLS_HPP
#define COHORT_CPP_SYMBOLS_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cpp_arrays.hpp"

namespace cohort {
inline namespace abi0 {

/** Shapes or dtypes that inference found, in the order of the symbol's lists. */
struct Inferred {
  bool complete = false;  // whether all is known; if not, and partial was not asked for, the lists are null
  Descs args{nullptr}, outputs{nullptr}, aux{nullptr};
};

/** An attribute of a node. */
struct NodeAttr {
  std::string node, key, value;
};

/** A graph of operators over variables. A copy has the same heads; setting an attribute of one does not change the other. */
class Symbol : public Handle<cohort_symbol, cohort_symbol_free> {
 public:
  using Handle::Handle;
  Symbol() noexcept = default;
  Symbol(const Symbol &other) : Handle(other ? group({&other, 1}).release() : nullptr) {}
  Symbol(Symbol &&other) noexcept = default;
  Symbol &operator=(const Symbol &other) {
    if (this != &other) *this = Symbol(other);
    return *this;
  }
  Symbol &operator=(Symbol &&other) noexcept = default;

  /** cohort_symbol_variable(). */
  static Symbol variable(const std::string &name, Span<Attr> attrs = {}) {
    const detail::CAttrs c(attrs);
    return make<Symbol>(cohort_symbol_variable, name.c_str(), c.keys.data(), c.values.data(), c.num);
  }
  /**
   * A node of an operator: cohort_symbol_create().
   *
   * @param name         "": a name that no node among the inputs has.
   * @param inputs       Inputs that are not given become variables.
   * @param input_names  The operator's input that each is for; none: in the operator's order.
   */
  static Symbol create(const std::string &op, const std::string &name, Span<Attr> attrs = {}, Span<Symbol> inputs = {},
                       Span<std::string> input_names = {}) {
    detail::check_length("input_names", input_names.size(), inputs.size());
    const detail::CAttrs c(attrs);
    const detail::CStrings names(input_names);
    return make<Symbol>(cohort_symbol_create, op.c_str(), name.c_str(), c.keys.data(), c.values.data(), c.num,
                        detail::raw(inputs).data(), input_names.empty() ? nullptr : names.data(), inputs.size());
  }
  /** All heads of several symbols: cohort_symbol_group(). */
  static Symbol group(Span<Symbol> symbols) {
    return make<Symbol>(cohort_symbol_group, detail::raw(symbols).data(), symbols.size());
  }
  /** cohort_symbol_from_json(). */
  static Symbol from_json(std::string_view json) {
    return make<Symbol>(cohort_symbol_from_json, json.data(), json.size());
  }
  /** cohort_symbol_load(). */
  static Symbol load(const std::string &path) { return make<Symbol>(cohort_symbol_load, path.c_str()); }

  /** cohort_symbol_to_json(). */
  std::string to_json() const { return query<const char *>(cohort_symbol_to_json, get()); }
  /** cohort_symbol_save(). */
  void save(const std::string &path) const { check(cohort_symbol_save(get(), path.c_str())); }
  /** A copy that shares no node: cohort_symbol_copy(). */
  Symbol copy() const { return make<Symbol>(cohort_symbol_copy, get()); }
  /** Replaces variables by symbols, in a copy: cohort_symbol_compose(). No names: in the order of the arguments. */
  Symbol compose(Span<Symbol> inputs, Span<std::string> names = {}, const std::string &name = "") const {
    detail::check_length("names", names.size(), inputs.size());
    const detail::CStrings c(names);
    return make<Symbol>(cohort_symbol_compose, get(), names.empty() ? nullptr : c.data(), detail::raw(inputs).data(),
                        inputs.size(), name.c_str());
  }
  /** cohort_symbol_internals(). */
  Symbol internals() const { return make<Symbol>(cohort_symbol_internals, get()); }
  /** The inputs of the head nodes, empty if there are none: cohort_symbol_children(). */
  Symbol children() const { return make<Symbol>(cohort_symbol_children, get()); }
  /** One head: cohort_symbol_output(). */
  Symbol output(size_t index) const { return make<Symbol>(cohort_symbol_output, get(), index); }
  /** cohort_symbol_output_named(). */
  Symbol output(const std::string &name) const { return make<Symbol>(cohort_symbol_output_named, get(), name.c_str()); }

  /** cohort_symbol_num_nodes(). */
  size_t num_nodes() const { return query<size_t>(cohort_symbol_num_nodes, get()); }
  /** A list of names by its COHORT_SYMBOL_ constant: cohort_symbol_num_names(), cohort_symbol_name_at(). */
  std::vector<std::string> names(cohort_symbol_list list) const {
    std::vector<std::string> all(query<size_t>(cohort_symbol_num_names, get(), list));
    for (size_t i = 0; i < all.size(); ++i) all[i] = query<const char *>(cohort_symbol_name_at, get(), list, i);
    return all;
  }
  std::vector<std::string> list_arguments() const { return names(COHORT_SYMBOL_ARGUMENTS); }
  std::vector<std::string> list_aux() const { return names(COHORT_SYMBOL_AUX); }
  std::vector<std::string> list_outputs() const { return names(COHORT_SYMBOL_OUTPUTS); }
  /** The name of the head's node, nullopt if there are several heads: cohort_symbol_name(). */
  std::optional<std::string> name() const { return optional(query<const char *>(cohort_symbol_name, get())); }
  /** An attribute of the head's node: cohort_symbol_attr(). */
  std::optional<std::string> attr(const std::string &key) const {
    return optional(query<const char *>(cohort_symbol_attr, get(), key.c_str()));
  }
  /** Sets attributes of the head's node, for this object alone: cohort_symbol_set_attrs(). */
  void set_attrs(Span<Attr> attrs) {
    const detail::CAttrs c(attrs);
    check(cohort_symbol_set_attrs(get(), c.keys.data(), c.values.data(), c.num));
  }
  /** The attributes of the head's node, or of all nodes: cohort_symbol_num_attrs(), cohort_symbol_attr_at(). */
  std::vector<NodeAttr> attrs(bool all = false) const {
    std::vector<NodeAttr> found(query<size_t>(cohort_symbol_num_attrs, get(), cohort_bool{all}));
    for (size_t i = 0; i < found.size(); ++i) {
      const char *node = nullptr, *key = nullptr, *value = nullptr;
      check(cohort_symbol_attr_at(get(), all, i, &node, &key, &value));
      found[i] = {node, key, value};
    }
    return found;
  }

  /** cohort_symbol_infer_shape(). */
  Inferred infer_shape(const Descs &known = {}, bool partial = false) const {
    return infer(cohort_symbol_infer_shape, known, partial);
  }
  /** cohort_symbol_infer_dtype(). */
  Inferred infer_dtype(const Descs &known = {}, bool partial = false) const {
    return infer(cohort_symbol_infer_dtype, known, partial);
  }

 private:
  static std::optional<std::string> optional(const char *text) {
    return text ? std::optional<std::string>(text) : std::nullopt;
  }
  template <typename Function>
  Inferred infer(Function function, const Descs &known, bool partial) const {
    cohort_bool complete = 0;
    cohort_descs *args = nullptr, *outputs = nullptr, *aux = nullptr;
    check(function(get(), known.get(), partial, &complete, &args, &outputs, &aux));
    Inferred found;
    found.complete = complete != 0;
    found.args.adopt(args);
    found.outputs.adopt(outputs);
    found.aux.adopt(aux);
    return found;
  }
};

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_SYMBOLS_HPP */
