// SPDX-License-Identifier: Apache-2.0
// Rectifiers with a slope below zero: leaky, prelu (slope gamma is learnt), rrelu (random slope in training), elu
// slope * (exp(x) - 1), selu, gelu x * (1 + erf(x / sqrt 2)) / 2.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct LeakyReLUAttrs {
  enum Type : int32_t { kElu, kGelu, kLeaky, kPrelu, kRrelu, kSelu };
  Type act_type;
  float slope;                     // leaky and elu
  float lower_bound, upper_bound;  // rrelu; out of training it uses their mean
};

}  // namespace cohort
