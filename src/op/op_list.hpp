// SPDX-License-Identifier: Apache-2.0
// Queries over the whole registry, for listings.
#pragma once

#include <string>
#include <vector>

#include "op/op.hpp"

namespace cohort {

const std::vector<std::string> &list_op_names();  // names and aliases, sorted
// Names of the outputs with default attributes. The reference stays valid. Thread-safe.
const std::vector<std::string> &default_output_names(const Op &op);
// Whether a gradient flows to an input of the operator's list, with default attributes, except for the attribute that
// must differ for the input to exist.
bool has_gradient(const Op &op, size_t input);

}  // namespace cohort
