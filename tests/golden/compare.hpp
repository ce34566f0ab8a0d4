// SPDX-License-Identifier: Apache-2.0
// Compares what a step found with what its case expects, by the rules of the formats.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "value.hpp"

namespace golden {

struct Tolerance {
  double rtol = 0, atol = 0;
};

// Reads the array that a case expects: `{"array": "FILE/NAME"}`.
using ArrayReader = std::function<HostArray(const Value &)>;

// Appends a line for each difference. `what` names the value in these lines: "values[0]".
void compare(const Value &expected, const Value &found, const std::string &what, const Tolerance &tolerance,
             const ArrayReader &read, std::vector<std::string> &differences);

// The same for one array.
void compare_arrays(const HostArray &expected, const HostArray &found, const std::string &what,
                    const Tolerance &tolerance, std::vector<std::string> &differences);

}  // namespace golden
