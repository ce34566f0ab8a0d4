// SPDX-License-Identifier: Apache-2.0
// The headers that source text may include when it is compiled at run time: headers of this project, and replacements
// for those of the standard library. Their text is part of this library, so no file is needed then.
#pragma once

#include <vector>

namespace cohort {

struct SourceHeader {
  const char *name, *text;  // the name in #include
};

const std::vector<SourceHeader> &source_headers();

}  // namespace cohort
