// SPDX-License-Identifier: Apache-2.0
// Lists of words in a setting's text. Under parse_tuple() of base/attributes.hpp, and for metric.
#pragma once

#include <string>
#include <vector>

namespace cohort {

// The words of "(a, b)", "[a,b]", "(a,)", "()" or "a"; else Error kInvalidArgument as the parsers of
// base/attributes.hpp.
std::vector<std::string> parse_list(const std::string &what, const std::string &source);

}  // namespace cohort
