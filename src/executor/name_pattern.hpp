// SPDX-License-Identifier: Apache-2.0
// Regular expressions over names of nodes and arrays, for the monitor. For any pattern, matching takes time linear in
// the name and bounded memory.
#pragma once

#include <memory>
#include <string>

namespace cohort {

class NamePattern {
 public:
  NamePattern(const std::string &pattern, bool anchored);  // kInvalidArgument; anchored: from the start of a name
  ~NamePattern();
  bool matches(const std::string &name) const;  // always if the pattern is empty; any thread

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace cohort
