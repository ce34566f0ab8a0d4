// SPDX-License-Identifier: Apache-2.0
// y = x * (knorm + alpha / nsize * sum(x^2))^-beta, the sum over nsize neighbouring channels.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets head gradient and data.
struct LrnAttrs {
  float alpha, beta, knorm;
  int32_t nsize;  // at least 1; an even size sums over nsize - 1 channels but still divides by nsize
};

}  // namespace cohort
