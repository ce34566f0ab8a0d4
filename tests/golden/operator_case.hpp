// SPDX-License-Identifier: Apache-2.0
// A case of the operator format: one operator or small graph, bound or called at once.
#pragma once

#include <string>
#include <vector>

#include "scenario.hpp"

namespace golden {

// Gives a line for each thing that is not as expected; none: it passed.
std::vector<std::string> run_operator_case(const GoldenCase &golden_case, const Settings &settings);

}  // namespace golden
