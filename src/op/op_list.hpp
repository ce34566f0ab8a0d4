// SPDX-License-Identifier: Apache-2.0
// The registry as a whole, for those who show it.
#pragma once

#include <string>
#include <vector>

#include "op/op.hpp"

namespace cohort {

const std::vector<std::string> &list_op_names();  // and aliases, sorted
// Names of outputs as the operator with default attributes has them. They stay where they are. Any thread.
const std::vector<std::string> &default_output_names(const Op &op);
// Whether a gradient flows to an input of the operator's list, with default attributes, but for one that has to be
// another one for the input to be there.
bool has_gradient(const Op &op, size_t input);

}  // namespace cohort
