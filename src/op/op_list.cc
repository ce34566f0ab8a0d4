// SPDX-License-Identifier: Apache-2.0
#include "op/op_list.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace cohort {

// The registry is complete once the library is loaded.
const std::vector<std::string> &list_op_names() {
  static const std::vector<std::string> *const names = [] {
    auto *all = new std::vector<std::string>;
    for (const Op *op : list_ops()) {
      all->push_back(op->name);
      all->insert(all->end(), op->aliases.begin(), op->aliases.end());
    }
    std::sort(all->begin(), all->end());
    all->erase(std::unique(all->begin(), all->end()), all->end());
    return all;
  }();
  return *names;
}

const std::vector<std::string> &default_output_names(const Op &op) {
  static std::mutex mutex;  // guards the map, whose entries stay
  static auto *const names = new std::map<const Op *, std::vector<std::string>>;
  const std::lock_guard<std::mutex> lock(mutex);
  auto [entry, added] = names->try_emplace(&op);
  if (added) entry->second = op.output_names(Attrs(op.new_attrs()));
  return entry->second;
}

bool has_gradient(const Op &op, size_t input) {
  const Attrs attrs(op.new_attrs());
  const Gradient gradient = op.gradient_of(attrs);
  if (gradient.kind == Gradient::Kind::kNone) return false;
  const std::vector<const InputField *> fields = op.input_fields(attrs, 1);
  const auto at = std::find(fields.begin(), fields.end(), &op.inputs[input]);
  if (at == fields.end() || (*at)->aux) return false;
  const bool all = gradient.of.empty() && !op.variadic.empty();
  return all || std::count(gradient.of.begin(), gradient.of.end(), int(at - fields.begin()));
}

}  // namespace cohort
