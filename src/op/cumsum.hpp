// SPDX-License-Identifier: Apache-2.0
// Cumulative sums along an axis: _np_cumsum, which symbols name cumsum.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct CumsumAttrs {            // backward: head gradient
  std::optional<int32_t> axis;  // none: over the flattened array
  Dtype dtype;                  // of the output; kNone: that of data, int64 for bool
};

}  // namespace cohort
