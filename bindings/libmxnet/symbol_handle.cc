// SPDX-License-Identifier: Apache-2.0
#include "symbol_handle.hpp"

#include "symbol_graph.hpp"

#include <algorithm>

namespace cohort_mxnet {

namespace {

// Keys that MXNet takes without underscores.
constexpr const char *kShortKeys[] = {"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"};

bool is_short_key(const std::string &key) {
  return std::any_of(std::begin(kShortKeys), std::end(kShortKeys), [&](const char *known) { return key == known; });
}

// One that only JSON takes for a variable.
bool is_plain_key(const std::string &key) {
  const bool has_underscores =
      key.size() > 4 && key.compare(0, 2, "__") == 0 && key.compare(key.size() - 2, 2, "__") == 0;
  return !has_underscores && !is_short_key(key);
}

}  // namespace

cohort::Symbol Symbol::get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  complete_locked();
  return symbol_;
}

bool Symbol::is_empty() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return op_.empty() && !symbol_;
}

void Symbol::complete_locked() {
  if (!op_.empty()) compose_locked(nullptr, {}, nullptr);
}

void Symbol::compose(const char *name, const std::vector<std::shared_ptr<Symbol>> &inputs, const char *const *names) {
  std::vector<cohort::Symbol> graphs;  // before the lock: a symbol may be an input of itself
  for (const auto &input : inputs) graphs.push_back(input->get());
  const std::lock_guard<std::mutex> lock(mutex_);
  compose_locked(name, std::move(graphs), names);
}

void Symbol::compose_locked(const char *name, std::vector<cohort::Symbol> inputs, const char *const *names) {
  const std::vector<cohort_symbol *> handles = cohort::detail::raw(cohort::Span<cohort::Symbol>(inputs));
  cohort_symbol *made = nullptr;
  if (op_.empty()) {
    if (!symbol_) fail("a symbol without outputs cannot be composed");
    cohort::check(cohort_symbol_compose(symbol_.get(), names, handles.data(), handles.size(), name, &made));
  } else {
    std::vector<const char *> keys, values;
    for (const auto &[key, value] : attrs_) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
    cohort::check(cohort_symbol_create(op_.c_str(), name, keys.data(), values.data(), keys.size(), handles.data(),
                                       names, handles.size(), &made));
    op_.clear();
  }
  symbol_.adopt(made);
}

void Symbol::set_attr(const std::string &key, const std::string &value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!op_.empty())
    attrs_.emplace_back(key, value);
  else if (!symbol_)
    fail("a symbol without outputs has no attributes");
  else if (cohort::Symbol variable = is_plain_key(key) ? variable_with_attr(symbol_, key, value) : cohort::Symbol())
    symbol_ = std::move(variable);
  else
    symbol_.set_attrs({{key, value}});
}

bool Symbol::find_attr(const std::string &key, std::string &value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!op_.empty()) {
    const auto found = std::find_if(attrs_.begin(), attrs_.end(), [&](const auto &attr) { return attr.first == key; });
    if (found != attrs_.end()) value = found->second;
    return found != attrs_.end();
  }
  if (!symbol_) return false;
  auto found = symbol_.attr(key);
  if (!found && is_short_key(key)) found = symbol_.attr("__" + key + "__");
  if (found) value = *found;
  return found.has_value();
}

}  // namespace cohort_mxnet
