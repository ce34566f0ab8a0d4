/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_operators.hpp
 * Operators: what they take, and applying them to arrays. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_OPERATORS_HPP
#define COHORT_CPP_OPERATORS_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cpp_arrays.hpp"

namespace cohort {
inline namespace abi0 {

/** An attribute of an operator: cohort_operator_attr(), cohort_operator_attr_range(). */
struct OperatorAttr {
  std::string name, type, doc;
  std::optional<std::string> default_value;  // nullopt: a value is required
  double low = 0, high = 0;
};

/** An input of an operator: cohort_operator_input(), cohort_operator_input_gradient(). */
struct OperatorInput {
  std::string name, doc;
  bool is_aux = false, has_gradient = false;
};

/** An operator: cohort_operator_info(), cohort_operator_output(), cohort_operator_precision(). */
struct OperatorInfo {
  std::string canonical, doc, count_attr;
  std::vector<OperatorAttr> attrs;
  std::vector<OperatorInput> inputs;
  std::vector<std::string> outputs;
  cohort_precision precision = COHORT_PRECISION_OWN;
};

/** All operator names, sorted: cohort_operator_num(), cohort_operator_name(). */
inline std::vector<std::string> operator_names() {
  std::vector<std::string> names(query<size_t>(cohort_operator_num));
  for (size_t i = 0; i < names.size(); ++i) names[i] = query<const char *>(cohort_operator_name, i);
  return names;
}

/** Describes an operator. */
inline OperatorInfo operator_info(const std::string &op) {
  OperatorInfo info;
  const char *canonical = nullptr, *doc = nullptr, *count_attr = nullptr;
  size_t num_attrs = 0, num_inputs = 0, num_outputs = 0;
  check(cohort_operator_info(op.c_str(), &canonical, &doc, &num_attrs, &num_inputs, &num_outputs, &count_attr));
  info.canonical = canonical;
  info.doc = doc;
  info.count_attr = count_attr;
  for (size_t i = 0; i < num_attrs; ++i) {
    OperatorAttr attr;
    const char *name = nullptr, *type = nullptr, *default_value = nullptr, *text = nullptr;
    check(cohort_operator_attr(op.c_str(), i, &name, &type, &default_value, &text));
    check(cohort_operator_attr_range(op.c_str(), i, &attr.low, &attr.high));
    attr.name = name;
    attr.type = type;
    attr.doc = text;
    if (default_value) attr.default_value = default_value;
    info.attrs.push_back(std::move(attr));
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    const char *name = nullptr, *text = nullptr;
    cohort_bool is_aux = 0;
    check(cohort_operator_input(op.c_str(), i, &name, &text, &is_aux));
    const auto has_gradient = query<cohort_bool>(cohort_operator_input_gradient, op.c_str(), i);
    info.inputs.push_back({name, text, is_aux != 0, has_gradient != 0});
  }
  for (size_t i = 0; i < num_outputs; ++i)
    info.outputs.push_back(query<const char *>(cohort_operator_output, op.c_str(), i));
  info.precision = query<cohort_precision>(cohort_operator_precision, op.c_str());
  return info;
}

/** Settings of one application of an operator: cohort_invoke_options. */
struct InvokeOptions {
  Context context;  // of an operator without inputs
  uint64_t seed = 0;
  bool is_train = false;
};

namespace detail {

inline cohort_invoke_options c_options(const InvokeOptions &options) {
  cohort_invoke_options c = COHORT_INVOKE_OPTIONS_INIT;
  c.context = &options.context;
  c.seed = options.seed;
  c.is_train = options.is_train;
  return c;
}

}  // namespace detail

/** Applies an operator to arrays and returns its outputs: cohort_operator_invoke(). Any thread. */
inline std::vector<NDArray> invoke(const std::string &op, Span<NDArray> inputs, Span<Attr> attrs = {},
                                   const InvokeOptions &options = {}) {
  const detail::CAttrs c(attrs);
  const cohort_invoke_options c_options = detail::c_options(options);
  return make<Arrays>(cohort_operator_invoke, op.c_str(), c.keys.data(), c.values.data(), c.num,
                      detail::raw(inputs).data(), inputs.size(), nullptr, size_t{0}, &c_options)
      .list();
}

/** The same into given arrays. */
inline void invoke_into(Span<NDArray> outputs, const std::string &op, Span<NDArray> inputs, Span<Attr> attrs = {},
                        const InvokeOptions &options = {}) {
  const detail::CAttrs c(attrs);
  const cohort_invoke_options c_options = detail::c_options(options);
  check(cohort_operator_invoke(op.c_str(), c.keys.data(), c.values.data(), c.num, detail::raw(inputs).data(),
                               inputs.size(), detail::raw(outputs).data(), outputs.size(), &c_options, nullptr));
}

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_OPERATORS_HPP */
