// SPDX-License-Identifier: Apache-2.0
// moments: mean and variance over axes.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct MomentsAttrs {  // backward: head gradients, data, mean
  std::optional<Tuple> axes;
  bool keepdims;
};

}  // namespace cohort
