// SPDX-License-Identifier: Apache-2.0
#include "kernels/strided_copy.hpp"

#include <algorithm>
#include <cstdlib>

namespace cohort {

StridedCopy::StridedCopy(std::vector<Axis> axes, size_t element_bytes) : element_bytes_(element_bytes) {
  // Sorts axes by the order of `to`, and joins neighbours that one index can step through.
  axes.erase(std::remove_if(axes.begin(), axes.end(), [](const Axis &a) { return a.length == 1; }), axes.end());
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis &a, const Axis &b) { return std::llabs(a.to) > std::llabs(b.to); });
  std::vector<Axis> joined;
  for (const Axis &axis : axes) {
    if (!joined.empty() && joined.back().from == axis.from * axis.length && joined.back().to == axis.to * axis.length) {
      joined.back() = {joined.back().length * axis.length, axis.from, axis.to};
    } else {
      joined.push_back(axis);
    }
  }
  if (!joined.empty()) {
    inner_ = joined.back();
    joined.pop_back();
  }
  // The axis along which `from` is contiguous and the one along which `to` is are copied in tiles that fit the cache.
  if (inner_.from != 1) {
    const auto dense = std::find_if(joined.begin(), joined.end(), [](const Axis &a) { return a.from == 1; });
    if (dense != joined.end()) {
      row_ = *dense;
      joined.erase(dense);
    }
  }
  if (row_.length == 1 && !joined.empty()) {
    row_ = joined.back();
    joined.pop_back();
  }
  outer_ = std::move(joined);
  for (const Axis &axis : outer_) num_outer_ *= axis.length;
}

std::vector<int64_t> dense_strides(const Shape &shape) {
  std::vector<int64_t> strides(size_t(shape.rank()), 1);
  for (int axis = shape.rank() - 1; axis-- > 0;) strides[size_t(axis)] = strides[size_t(axis) + 1] * shape[axis + 1];
  return strides;
}

}  // namespace cohort
