// SPDX-License-Identifier: Apache-2.0
// Copies an array into another one with any order and direction of axes: transposes, slices, reversals. Used by the
// kernels of movement operators. Each backend defines run() and fill().
#pragma once

#include <cstdint>
#include <vector>

#include "device/kernel.hpp"

namespace cohort {

// For every index: to[sum(index * to_stride)] = from[sum(index * from_stride)]. Strides count elements and may be
// negative (the pointer is to the element of index 0) or, for `from`, zero. Each element of `to` is written once.
class StridedCopy {
 public:
  struct Axis {
    int64_t length, from, to;
  };
  StridedCopy() = default;
  StridedCopy(std::vector<Axis> axes, size_t element_bytes);
  void run(const void *from, void *to, const Lane &lane) const;
  // Writes the element at `value`, in the host's memory, to all places.
  void fill(const void *value, void *to, const Lane &lane) const;

 private:
  template <typename T>
  void run_as(const T *from, T *to, const Lane &lane) const;

  std::vector<Axis> outer_;  // axes outside the innermost one or two
  Axis row_ = {1, 0, 0};     // the other axis of a tiled copy; length 1: there is only one axis
  Axis inner_ = {1, 1, 1};
  int64_t num_outer_ = 1;
  size_t element_bytes_ = 0;
};

// Strides of a row-major array of this shape, in elements.
std::vector<int64_t> dense_strides(const Shape &shape);

}  // namespace cohort
