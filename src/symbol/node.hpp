// SPDX-License-Identifier: Apache-2.0
// Rules for the nodes of a symbol that composing and reading JSON share. For src/symbol only.
#pragma once

#include "symbol/symbol.hpp"

namespace cohort {

const std::vector<std::string> &hidden_keys();  // ctx_group, lr_mult, ..: stored as __ctx_group__, .. (SYM-07)
bool is_hidden_key(const std::string &key);     // __x__
std::string long_key(const std::string &key);   // "lr_mult" to "__lr_mult__", all others as they are
const std::string *hidden_suffix(const std::string &key);  // "lr_mult" of "weight_lr_mult"; null if there is none

// Throws kInvalidArgument if an auxiliary state of the node is no variable.
void check_auxiliary(const Node &node);

}  // namespace cohort
