// SPDX-License-Identifier: Apache-2.0
// Attributes as MXNet writes them: text to text. Parsers for the forms that its files hold; used by op and symbol.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

using AttrMap = std::map<std::string, std::string>;

// All throw Error kInvalidArgument naming `what`, the expected form and the text found.
int64_t parse_int(const std::string &what, const std::string &source);   // "3", "-1", "3L", "3.0"
double parse_float(const std::string &what, const std::string &source);  // "0.9", "1e-3", "inf"
bool parse_bool(const std::string &what, const std::string &source);     // "True", "true", "1", "False", ...
// "(1, 2)", "[1,2]", "(1L, 2L)", "(3,)", "()", "3"; "None" as an element reads as nullopt
std::vector<std::optional<int64_t>> parse_tuple(const std::string &what, const std::string &source);
bool is_none(const std::string &source);  // "None", "none", ""

}  // namespace cohort
