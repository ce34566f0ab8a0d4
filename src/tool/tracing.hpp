// SPDX-License-Identifier: Apache-2.0
// The option --trace FILE of the commands that run networks.
#pragma once

#include <optional>
#include <string>

#include "cohort/cohort.hpp"
#include "tool/command_line.hpp"

namespace cohort::tool {

inline const Option kTraceOption = {"--trace", "FILE",
                                    "record a trace for chrome://tracing or Perfetto, and show what takes longest"};

// Records from the constructor to finish(), if the option was given. The constructor fails if the file cannot be
// written.
class Tracing {
 public:
  explicit Tracing(const Arguments &arguments);
  // Writes the file. Returns a table of the times; empty if nothing was recorded.
  std::string finish();

 private:
  std::string path_;
  std::optional<Trace> trace_;
};

}  // namespace cohort::tool
