// SPDX-License-Identifier: Apache-2.0
// Element by element: relu max(x, 0); sigmoid 1 / (1 + exp(-x)); tanh; softrelu log(1 + exp(x)); softsign
// x / (1 + |x|).
#pragma once

#include "op/op.hpp"

namespace cohort {

struct ActivationAttrs {
  enum Type : int32_t { kRelu = 0, kSigmoid = 1, kTanh = 2, kSoftrelu = 3, kSoftsign = 4 };
  Type act_type;
};

}  // namespace cohort
