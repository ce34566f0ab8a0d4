// SPDX-License-Identifier: Apache-2.0
// Correlation of patches of one image with displaced patches of another: the mean over the patch and all channels of
// their products, or of their absolute differences.
#pragma once

#include "op/op.hpp"

namespace cohort {

// The backward kernel gets head gradient, data1 and data2.
struct CorrelationAttrs {
  int32_t kernel_size, max_displacement, stride1, stride2, pad_size;
  bool is_multiply;

  int64_t reach() const { return max_displacement / stride2; }  // number of displacements to each side
  int64_t border() const { return int64_t(max_displacement) + (kernel_size - 1) / 2; }
};

}  // namespace cohort
