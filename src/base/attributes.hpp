// SPDX-License-Identifier: Apache-2.0
// Parsers for attribute values, which MXNet stores as text. Used by op and symbol.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

using AttrMap = std::map<std::string, std::string>;

// All throw kInvalidArgument with `what`, the expected form and the text found.
int64_t parse_int(const std::string &what, const std::string &source);   // "3", "-1", "3L", "3.0"
double parse_float(const std::string &what, const std::string &source);  // "0.9", "1e-3", "inf"
bool parse_bool(const std::string &what, const std::string &source);     // "True", "true", "1", "False", ...
// "(1, 2)", "[1,2]", "(1L, 2L)", "(3,)", "()", "3"; an element "None" becomes nullopt.
std::vector<std::optional<int64_t>> parse_tuple(const std::string &what, const std::string &source);
bool is_none(const std::string &source);  // "None", "none", ""

}  // namespace cohort
