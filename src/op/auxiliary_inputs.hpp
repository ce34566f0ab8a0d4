// SPDX-License-Identifier: Apache-2.0
// Which inputs of a node are auxiliary states: those whose fields say so, normally the last ones.
#pragma once

#include <vector>

#include "op/op.hpp"

namespace cohort {

std::vector<int> auxiliary_inputs(const Op &op, const Attrs &attrs, size_t num_inputs);

}  // namespace cohort
