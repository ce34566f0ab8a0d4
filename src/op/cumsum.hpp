// SPDX-License-Identifier: Apache-2.0
// Running sums along an axis: _np_cumsum, as symbols call it cumsum.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct CumsumAttrs {            // backward: head gradient
  std::optional<int32_t> axis;  // none: of the flattened array
  Dtype dtype;                  // of the output; kNone: that of data, int64 for bool
};

}  // namespace cohort
