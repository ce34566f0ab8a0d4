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
  static std::mutex mutex;  // guards the map, whose entries are never removed
  static auto *const names = new std::map<const Op *, std::vector<std::string>>;
  const std::lock_guard<std::mutex> lock(mutex);
  auto [entry, added] = names->try_emplace(&op);
  if (added) entry->second = op.output_names(Attrs(op.new_attrs()));
  return entry->second;
}

namespace {

// The texts accepted for an enumeration or boolean attribute.
std::vector<std::string> words_of(const AttrField &field) {
  if (field.type == "boolean") return {"0", "1"};
  std::vector<std::string> words;
  for (size_t begin = field.type.find('\''); begin != std::string::npos; begin = field.type.find('\'', begin)) {
    const size_t end = field.type.find('\'', begin + 1);
    if (end == std::string::npos) break;
    words.push_back(field.type.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return words;
}

// Default attributes, except for the attribute that must differ for the input to exist.
Attrs attributes_with(const Op &op, const InputField &input) {
  Attrs defaults(op.new_attrs());
  if (!input.present || input.present(defaults)) return defaults;
  for (const AttrField &field : op.attrs) {
    for (const std::string &word : words_of(field)) {
      const std::shared_ptr<void> changed = op.new_attrs();
      field.set(changed.get(), word);
      if (input.present(Attrs(changed))) return Attrs(changed);
    }
  }
  return defaults;
}

}  // namespace

bool has_gradient(const Op &op, size_t input) {
  const Attrs attrs = attributes_with(op, op.inputs[input]);
  const Gradient gradient = op.gradient_of(attrs);
  if (gradient.kind == Gradient::Kind::kNone) return false;
  const std::vector<const InputField *> fields = op.input_fields(attrs, 1);
  const auto at = std::find(fields.begin(), fields.end(), &op.inputs[input]);
  if (at == fields.end() || (*at)->aux) return false;
  const bool all = gradient.of.empty() && !op.variadic.empty();
  return all || std::count(gradient.of.begin(), gradient.of.end(), int(at - fields.begin()));
}

}  // namespace cohort
