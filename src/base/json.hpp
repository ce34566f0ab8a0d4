// SPDX-License-Identifier: Apache-2.0
// JSON from others, read into a tree: symbols, and parameters of initializers. The text is not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort {

// The parser's own tree asks for memory while it is destroyed, which ends the process where there is none.
struct Json {
  enum class Kind { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string text;            // a string; true, false and numbers as text
  int64_t integer = 0;         // kInteger; whole numbers beyond 64 bits are kNumber
  std::vector<Json> elements;  // of an array; the values of an object
  std::vector<std::string> keys;

  bool is(Kind wanted) const { return kind == wanted; }
  const Json *find(const std::string &key) const;  // null if this is no object that has it
};

// Throws kFormat that names `source`, also for keys that come twice in one object and for more levels of nesting than
// `most_depth`.
Json parse_json(const std::string &text, const std::string &source, int most_depth);

}  // namespace cohort
