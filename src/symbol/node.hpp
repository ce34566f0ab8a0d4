// SPDX-License-Identifier: Apache-2.0
// Rules for nodes that composing and JSON reading share. Private to src/symbol.
#pragma once

#include "symbol/symbol.hpp"

namespace cohort {

const std::vector<std::string> &hidden_keys();  // ctx_group, lr_mult, ..: stored as __ctx_group__, .. (SYM-07)
bool is_hidden_key(const std::string &key);     // __x__
std::string long_key(const std::string &key);   // "lr_mult" to "__lr_mult__"; other keys unchanged
const std::string *hidden_suffix(const std::string &key);  // "lr_mult" of "weight_lr_mult"; null if there is none

// Throws kInvalidArgument if an auxiliary state of the node is not a variable.
void check_auxiliary(const Node &node);

}  // namespace cohort
