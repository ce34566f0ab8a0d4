// SPDX-License-Identifier: Apache-2.0
// Lengths of axes, and strides, that a kernel is given.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "base/shape.hpp"

namespace cohort {

struct AxisLengths {
  int64_t num_axes = 0, lengths[kMaxAxes] = {}, strides[kMaxAxes] = {};
  void add(int64_t length, int64_t stride, const char *op) {
    if (num_axes == kMaxAxes) throw Error(Code::kUnsupported, text(op, " of more than ", kMaxAxes, " lengths"));
    lengths[num_axes] = length;
    strides[num_axes++] = stride;
  }
};

}  // namespace cohort
