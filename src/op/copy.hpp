// SPDX-License-Identifier: Apache-2.0
// Copies and casts: _copy, Cast, amp_cast, amp_multicast; add_n.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct CastAttrs {
  Dtype dtype;
};

struct AmpMulticastAttrs {
  int32_t num_outputs;
  bool cast_narrow;
};

}  // namespace cohort
