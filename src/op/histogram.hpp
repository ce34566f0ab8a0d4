// SPDX-License-Identifier: Apache-2.0
// _histogram: the number of elements between consecutive edges.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct HistogramAttrs {
  std::optional<int32_t> bin_cnt;    // none: the edges are an input
  std::optional<std::string> range;  // "(low, high)"
  double low, high;                  // read from range
};

}  // namespace cohort
