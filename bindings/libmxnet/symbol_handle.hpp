// SPDX-License-Identifier: Apache-2.0
// Symbols behind SymbolHandle.
#pragma once

#include <mutex>

#include "imperative.hpp"

namespace cohort_mxnet {

// A graph, or an operator that waits for its inputs: MXNet makes a node in two calls, the second of which changes the
// handle.
class Symbol : public Object {
 public:
  static constexpr Kind kKind = Kind::kSymbol;
  static constexpr const char *kName = "a Symbol";

  explicit Symbol(cohort::Symbol symbol) : Object(kKind), symbol_(std::move(symbol)) {}
  Symbol(std::string op, TextAttrs attrs) : Object(kKind), op_(std::move(op)), attrs_(std::move(attrs)) {}

  // A symbol of the same heads, which other threads do not change. An operator without inputs gets variables for them,
  // and an automatic name. Empty: it has no heads.
  cohort::Symbol get();
  bool is_empty();

  // Gives inputs to an operator, or replaces variables of a graph.
  void compose(const char *name, const std::vector<std::shared_ptr<Symbol>> &inputs, const char *const *names);
  void set_attr(const std::string &key, const std::string &value);
  // False if there is none.
  bool find_attr(const std::string &key, std::string &value);

 private:
  std::mutex mutex_;  // guards the others
  cohort::Symbol symbol_;
  std::string op_;  // not empty: an operator without inputs
  TextAttrs attrs_;

  void compose_locked(const char *name, std::vector<cohort::Symbol> inputs, const char *const *names);
  void complete_locked();
};

inline void *new_symbol(cohort::Symbol symbol) { return publish(std::make_shared<Symbol>(std::move(symbol))); }

}  // namespace cohort_mxnet
