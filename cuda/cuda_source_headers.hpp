// SPDX-License-Identifier: Apache-2.0
// The headers of this project, and what stands in for the standard library's, of which source text is compiled while a
// program runs: nothing of them has to be there then.
#pragma once

#include <vector>

namespace cohort {

struct SourceHeader {
  const char *name, *text;  // as it is included
};

const std::vector<SourceHeader> &source_headers();

}  // namespace cohort
