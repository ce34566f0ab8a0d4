// SPDX-License-Identifier: Apache-2.0
// Summaries of cases, for `cohort-golden --list --verbose`.
#pragma once

#include <string>

#include "case_files.hpp"

namespace golden {

// One line from the case's JSON: title of a scenario, operator with attributes and input shapes, optimizer with its
// settings, or source and size of a model.
std::string summary_of(const GoldenCase &golden_case);

}  // namespace golden
