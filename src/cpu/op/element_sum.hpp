// SPDX-License-Identifier: Apache-2.0
// The sum of two elements in their own type: integers wrap, bools are combined with "or", 16-bit floats are added in
// float.
#pragma once

#include "base/dtype_cast.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {

template <typename T>
inline T element_sum(T a, T b) {
  if constexpr (kIsHalf<T>) {
    return T(float(a) + float(b));
  } else {
    return pointwise::add(a, b);
  }
}

}  // namespace cohort
