// SPDX-License-Identifier: Apache-2.0
// A case of the optimizer format: an optimizer that updates a few parameters step by step.
#pragma once

#include <string>
#include <vector>

#include "scenario.hpp"

namespace golden {

// Returns a line for each difference; none: the case passed.
std::vector<std::string> run_optimizer_case(const GoldenCase &golden_case, const Settings &settings);

}  // namespace golden
