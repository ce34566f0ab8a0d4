// SPDX-License-Identifier: Apache-2.0
#include "golden_handles.hpp"

namespace golden {

std::vector<int64_t> shape_of(const cohort_ndarray *array) {
  std::vector<int64_t> shape(COHORT_MAX_AXES);
  int32_t num_axes = 0;
  check(cohort_ndarray_shape(array, shape.data(), shape.size(), &num_axes));
  shape.resize(num_axes);
  return shape;
}

NDArray share(const cohort_ndarray *array) { return make<NDArray>(cohort_ndarray_share, array); }

NDArray copy_of(const cohort_ndarray *array, const cohort_context &context) {
  return make<NDArray>(cohort_ndarray_copy, array, &context);
}

NDArray zeros_like(const cohort_ndarray *array, int32_t dtype, const cohort_context &context) {
  const std::vector<int64_t> shape = shape_of(array);
  return make<NDArray>(cohort_ndarray_zeros, shape.data(), static_cast<int32_t>(shape.size()), dtype, &context);
}

}  // namespace golden
