// SPDX-License-Identifier: Apache-2.0
// _contrib_fft: numbers along the last axis to pairs (real, imaginary), twice as many; _contrib_ifft: the real parts of
// the inverse, times the length. _contrib_count_sketch: numbers added up in places that a hash gives.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct CountSketchAttrs {
  int32_t out_dim;
};

}  // namespace cohort
