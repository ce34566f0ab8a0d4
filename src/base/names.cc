// SPDX-License-Identifier: Apache-2.0
#include "base/names.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"

namespace cohort {

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
