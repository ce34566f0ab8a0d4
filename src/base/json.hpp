// SPDX-License-Identifier: Apache-2.0
// Parses untrusted JSON (symbols, parameters of initializers) into a tree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort {

// Used instead of nlohmann::json's own tree, whose destructor allocates and so terminates the process when memory is
// out. A file may have millions of small arrays, so it has few members.
struct Json {
  enum class Kind { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string text;            // a string; true, false and numbers as text
  std::vector<Json> elements;  // of an array; of an object a key, its value, and so on

  bool is(Kind wanted) const { return kind == wanted; }
  int64_t integer() const;  // of kInteger; whole numbers beyond 64 bits are kNumber
  size_t num_keys() const { return elements.size() / 2; }
  const std::string &key(size_t index) const { return elements[2 * index].text; }
  const Json &value(size_t index) const { return elements[2 * index + 1]; }
  const Json *find(const std::string &wanted) const;  // null if this is not an object or lacks the key
};

// Throws kFormat, naming `source`, for invalid JSON, for a key repeated within one object, and for nesting deeper than
// `most_depth` levels.
Json parse_json(const std::string &text, const std::string &source, int most_depth);

}  // namespace cohort
