// SPDX-License-Identifier: Apache-2.0
// The elements that a reduction combines with one of them, for gradients that need more of them than the result.
#pragma once

#include <cstdint>
#include <vector>

#include "base/shape.hpp"
#include "kernels/backend.hpp"

namespace cohort {

// All elements that differ from a given one in the indices of the reduced axes only.
class ReductionGroup {
 public:
  ReductionGroup(const Shape &shape, const std::vector<bool> &reduced) {
    int64_t stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; stride *= shape[axis--]) {
      if (!reduced[size_t(axis)] || shape[axis] == 1) continue;
      size_ *= shape[axis];
      if (num_axes_ > 0 && stride == stride_[num_axes_ - 1] * length_[num_axes_ - 1]) {
        length_[num_axes_ - 1] *= shape[axis];  // contiguous with the axis behind it
        continue;
      }
      length_[num_axes_] = shape[axis];
      stride_[num_axes_++] = stride;
    }
  }
  COHORT_HOST_DEVICE int64_t size() const { return size_; }
  // The first element of the group of element `index`.
  COHORT_HOST_DEVICE int64_t first(int64_t index) const {
    int64_t at = index;
    for (int i = 0; i < num_axes_; ++i) at -= index / stride_[i] % length_[i] * stride_[i];
    return at;
  }
  // Element k of the group that begins at `first`.
  COHORT_HOST_DEVICE int64_t at(int64_t first, int64_t k) const {
    for (int i = 0; i < num_axes_; ++i) {
      first += k % length_[i] * stride_[i];
      k /= length_[i];
    }
    return first;
  }

 private:
  int num_axes_ = 0;
  int64_t size_ = 1;
  int64_t length_[kMaxAxes] = {}, stride_[kMaxAxes] = {};  // from the last axis on; adjacent ones are one
};

// The product of a group without element `index`: the slope of the product there. read(i) returns element i. Ends at
// the first zero.
template <typename C, typename Read>
COHORT_HOST_DEVICE C product_of_others(const ReductionGroup &group, int64_t index, bool skips_nan, const Read &read) {
  const int64_t first = group.first(index);
  C product = 1;
  for (int64_t k = 0; k < group.size(); ++k) {
    const int64_t at = group.at(first, k);
    if (at == index) continue;
    const C value = read(at);
    if (value == C(0)) return C(0);
    if (!skips_nan || value == value) product *= value;
  }
  return product;
}

}  // namespace cohort
