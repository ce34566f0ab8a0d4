// SPDX-License-Identifier: Apache-2.0
// _contrib_fft: numbers along the last axis to (real, imaginary) pairs; _contrib_ifft: the real parts of the inverse,
// times the length. _contrib_count_sketch: sums numbers into positions given by a hash.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct CountSketchAttrs {
  int32_t out_dim;
};

}  // namespace cohort
