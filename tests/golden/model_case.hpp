// SPDX-License-Identifier: Apache-2.0
// A case that is a whole network: inferred shapes and types, inference, a training step on one device and split over
// two, and steps of an optimizer.
#pragma once

#include <string>
#include <vector>

#include "scenario.hpp"

namespace golden {

// Returns a line for each difference; none: the case passed.
std::vector<std::string> run_model_case(const GoldenCase &golden_case, const Settings &settings);

}  // namespace golden
