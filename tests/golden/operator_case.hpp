// SPDX-License-Identifier: Apache-2.0
// A case of the operator format: one operator or small graph, bound or called at once.
#pragma once

#include <string>
#include <vector>

#include "scenario.hpp"

namespace golden {

// Returns a line for each difference; none: the case passed.
std::vector<std::string> run_operator_case(const GoldenCase &golden_case, const Settings &settings);

}  // namespace golden
