// SPDX-License-Identifier: Apache-2.0
// _contrib_allclose: whether |a - b| <= atol + rtol |b| for all elements.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct AllcloseAttrs {
  float rtol, atol;
  bool equal_nan;  // NaN is close to NaN
};

}  // namespace cohort
