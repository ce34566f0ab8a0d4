// SPDX-License-Identifier: Apache-2.0
// Parses untrusted JSON (symbols, parameters of initializers) into a tree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort {

// Used instead of nlohmann::json's own tree, whose destructor allocates and so terminates the process when memory is
// out.
struct Json {
  enum class Kind { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string text;            // a string; true, false and numbers as text
  int64_t integer = 0;         // kInteger; whole numbers beyond 64 bits are kNumber
  std::vector<Json> elements;  // of an array; the values of an object
  std::vector<std::string> keys;

  bool is(Kind wanted) const { return kind == wanted; }
  const Json *find(const std::string &key) const;  // null if this is not an object or lacks the key
};

// Throws kFormat, naming `source`, for invalid JSON, for a key repeated within one object, and for nesting deeper than
// `most_depth` levels.
Json parse_json(const std::string &text, const std::string &source, int most_depth);

}  // namespace cohort
