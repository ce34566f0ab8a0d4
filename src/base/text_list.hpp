// SPDX-License-Identifier: Apache-2.0
// Parses lists of words in the text of a setting. Used by parse_tuple() in base/attributes.hpp and by metric.
#pragma once

#include <string>
#include <vector>

namespace cohort {

// The words of "(a, b)", "[a,b]", "(a,)", "()" or "a". Anything else throws kInvalidArgument, as in
// base/attributes.hpp.
std::vector<std::string> parse_list(const std::string &what, const std::string &source);

}  // namespace cohort
