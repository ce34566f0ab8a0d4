// SPDX-License-Identifier: Apache-2.0
// --trace FILE of the commands that run networks.
#pragma once

#include <string>

#include "tool/command_line.hpp"
#include "tool/tool_handles.hpp"

namespace cohort::tool {

inline const Option kTraceOption = {
    "--trace", "FILE", "record what is done, for chrome://tracing or Perfetto, and show what takes longest"};

// Records from its making to finish(), if the option was given. A file that cannot be written is an error at once.
class Tracing {
 public:
  explicit Tracing(const Arguments &arguments);
  // Writes the file. What took how long, as a table; empty if nothing was recorded.
  std::string finish();

 private:
  std::string path_;
  Trace trace_;
};

}  // namespace cohort::tool
