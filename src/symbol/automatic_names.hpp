// SPDX-License-Identifier: Apache-2.0
// Names of nodes that are composed without one: the operator's name in lower case and a number. For symbol.cc and
// symbol_json.cc.
#pragma once

#include <string>
#include <vector>

#include "symbol/symbol.hpp"

namespace cohort {

// Remembers a name that a caller or a file gives, if it looks like an automatic one or like that of an input of one.
void note_given_name(const std::string &name);

// The next name for a node of this operator: no call has returned it before, and no node that the inputs reach is
// called so, or as the variable of one of the `missing` inputs will be.
std::string automatic_name(const std::string &op, const std::vector<std::string> &missing,
                           const std::vector<Symbol> &inputs);

}  // namespace cohort
