// SPDX-License-Identifier: Apache-2.0
// Names, and lists of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort {

inline bool ends_with(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// The index of the first entry equal to `name`, or -1.
int index_of(const std::vector<std::string> &names, const std::string &name);

// Up to three of the known names that differ least from one which is not among them, for messages: "; the nearest name
// is 'conv1_weight'". Empty if all differ too much.
std::string nearest_words(const std::vector<std::string> &known, const std::string &name);

// "1 array", "2 arrays".
inline std::string count_of(size_t num, const char *noun) {
  return std::to_string(num) + " " + noun + (num == 1 ? "" : "s");
}

// Throws kName listing the names that occur more than once; `what` says what the names are of: "arguments".
void refuse_duplicates(const std::vector<std::string> &names, const char *what);

}  // namespace cohort
