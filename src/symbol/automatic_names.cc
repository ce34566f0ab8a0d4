// SPDX-License-Identifier: Apache-2.0
// Looking at all nodes for each name would make the composition of long chains quadratic. Automatic names differ among
// themselves, so that the nodes need to be looked at only if somebody has given the name.
#include "symbol/automatic_names.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "op/op_list.hpp"
#include "symbol/node.hpp"

namespace cohort {
namespace {

struct Known {
  std::mutex mutex;                       // protects the other members
  std::map<std::string, int64_t> next;    // number by operator in lower case
  std::unordered_set<std::string> given;  // automatic names that callers or files have given
};

Known &known() {
  static Known &all = *new Known;  // never destroyed: symbols may be composed while the process ends
  return all;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string hint_of(std::string op) {
  for (char &c : op)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return op;
}

const std::unordered_set<std::string> &all_hints() {
  static const std::unordered_set<std::string> &hints = *[] {
    auto all = std::make_unique<std::unordered_set<std::string>>();
    for (const std::string &op : list_op_names()) all->insert(hint_of(op));
    return all.release();
  }();
  return hints;
}

// No automatic name is longer. Names of files may be, by megabytes.
size_t longest_automatic() {
  static const size_t longest = [] {
    size_t bytes = 0;
    for (const std::string &hint : all_hints()) bytes = std::max(bytes, hint.size());
    return bytes + std::numeric_limits<int64_t>::digits10 + 1;
  }();
  return longest;
}

// An operator in lower case and a number. Names of operators may end in digits, too.
bool is_automatic(const std::string &name) {
  for (size_t end = name.size(); end > 0 && is_digit(name[end - 1]);)
    if (all_hints().count(name.substr(0, --end))) return true;
  return false;
}

}  // namespace

void note_given_name(const std::string &name) {
  std::vector<std::string> found;
  for (size_t end = 1; end <= std::min(name.size(), longest_automatic()); ++end) {
    if (!is_digit(name[end - 1]) || (end < name.size() && name[end] != '_')) continue;
    std::string front = name.substr(0, end);
    if (is_automatic(front)) found.push_back(std::move(front));
  }
  if (found.empty()) return;
  const std::lock_guard<std::mutex> lock(known().mutex);
  for (std::string &front : found) known().given.insert(std::move(front));
}

std::string automatic_name(const std::string &op, const std::vector<std::string> &missing,
                           const std::vector<Symbol> &inputs) {
  const std::string hint = hint_of(op);
  std::vector<NodePtr> nodes;  // own the names
  std::unordered_set<std::string_view> names;
  const auto is_taken = [&](const std::string &name) {
    if (nodes.empty()) {
      std::vector<Entry> heads;
      for (const Symbol &input : inputs) heads.insert(heads.end(), input.heads().begin(), input.heads().end());
      nodes = Symbol(std::move(heads)).nodes();
      for (const NodePtr &node : nodes) names.insert(node->name);
    }
    const auto is_variable_taken = [&](const std::string &input) { return names.count(name + "_" + input) > 0; };
    return names.count(name) > 0 || std::any_of(missing.begin(), missing.end(), is_variable_taken);
  };
  while (true) {
    std::string name;
    bool was_given;
    {
      const std::lock_guard<std::mutex> lock(known().mutex);
      name = hint + std::to_string(known().next[hint]++);
      was_given = known().given.count(name) > 0;
    }
    if (!was_given || !is_taken(name)) return name;
  }
}

}  // namespace cohort
