// SPDX-License-Identifier: Apache-2.0
#include "base/names.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.hpp"

namespace cohort {
namespace {

// Edit distance of two words, ignoring case.
size_t count_changes(const std::string &from, const std::string &to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t k = 0; k < row.size(); ++k) row[k] = k;
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < to.size(); ++k) {
      const bool same = std::tolower((unsigned char)(from[i])) == std::tolower((unsigned char)(to[k]));
      const size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, row[k] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_words(const std::vector<std::string> &known, const std::string &name) {
  constexpr size_t kMostNames = 3;
  std::vector<std::string> nearest;
  size_t fewest = std::min<size_t>(name.size(), 64) / 3;  // names that differ more are not suggested
  for (const std::string &one : known) {
    if (one.size() > name.size() + fewest || name.size() > one.size() + fewest) continue;
    const size_t changes = count_changes(name, one);
    if (changes > fewest) continue;
    if (changes < fewest) nearest.clear();
    fewest = changes;
    nearest.push_back(one);
  }
  if (nearest.empty()) return "";
  if (nearest.size() > kMostNames) nearest.resize(kMostNames);
  std::string words = nearest.size() == 1 ? "; the nearest name is " : "; the nearest names are ";
  for (size_t i = 0; i < nearest.size(); ++i) words += (i ? ", '" : "'") + nearest[i] + "'";
  return words;
}

int index_of(const std::vector<std::string> &names, const std::string &name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : int(found - names.begin());
}

void refuse_duplicates(const std::vector<std::string> &names, const char *what) {
  std::set<std::string> distinct;
  std::string twice;
  for (const std::string &name : names)
    if (!distinct.insert(name).second) twice += (twice.empty() ? "'" : ", '") + name + "'";
  if (!twice.empty()) {
    throw Error(Code::kName, text(what, ": expected names that differ, found twice: ", twice),
                twice.substr(1, twice.find('\'', 1) - 1));
  }
}

}  // namespace cohort
