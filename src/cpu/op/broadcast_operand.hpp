// SPDX-License-Identifier: Apache-2.0
// Reads an operand as if it had a larger shape, and iterates over the axes of a reduction. For kernels of
// broadcasting operators and reductions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/op/pointwise_loops.hpp"
#include "device/kernel.hpp"

namespace cohort {

// An operand of a shape that broadcasts to another: axes are aligned from the last, and one of length 1 is repeated.
class BroadcastOperand {
 public:
  BroadcastOperand(const Shape &shape, Dtype dtype, const Shape &to, Dtype compute);

  // Elements [begin, begin + count) of the broadcast array, in row-major order: in place if possible, else copied to
  // buffer. C is the type `compute`.
  template <typename C>
  const C *block(const void *data, int64_t begin, int64_t count, C *buffer) const {
    if (dense_) {
      if (same_type_) return static_cast<const C *>(data) + begin;
      load_(data, begin, buffer, count);
      return buffer;
    }
    if (const Axis &inner = axes_.back(); same_type_ && inner.stride == 1) {
      if (begin % inner.length + count <= inner.length) return static_cast<const C *>(data) + offset(begin);
    }
    gather(data, begin, count, buffer, [](void *to, int64_t at, const void *one, int64_t n) {
      std::fill_n(static_cast<C *>(to) + at, n, *static_cast<const C *>(one));
    });
    return buffer;
  }
  // How many elements from `begin` on are contiguous in the array and could be read in place.
  int64_t in_place(int64_t begin) const {
    if (!same_type_ || axes_.back().stride != 1) return 0;
    return dense_ ? axes_[0].length - begin : axes_.back().length - begin % axes_.back().length;
  }

 private:
  using Fill = void (*)(void *to, int64_t at, const void *one, int64_t count);
  // The offset of an element of the broadcast array.
  int64_t offset(int64_t index) const {
    int64_t at = 0;
    for (size_t i = axes_.size(); i-- > 0; index /= axes_[i].length) at += index % axes_[i].length * axes_[i].stride;
    return at;
  }
  void gather(const void *data, int64_t begin, int64_t count, void *buffer, Fill fill) const;

  struct Axis {
    int64_t length, stride;
  };
  std::vector<Axis> axes_;  // neighbours joined where possible; the last has stride 1 or 0
  bool dense_, same_type_;
  size_t compute_bytes_;
  LoadBlock load_;
};

// The axes of an array that is reduced: groups of neighbouring axes, the kept and the reduced ones, without the
// innermost group.
struct ReduceAxes {
  struct Axis {
    int64_t length, stride;  // stride in the array that is reduced
  };
  ReduceAxes(const Shape &shape, const std::vector<bool> &reduced);

  std::vector<Axis> kept, dropped;
  int64_t num_kept = 1, num_dropped = 1;  // products of the lengths
  int64_t inner = 1;                      // length of the innermost group
  bool inner_kept = false;

  static int64_t offset(const std::vector<Axis> &axes, int64_t index) {
    int64_t at = 0;
    for (size_t i = axes.size(); i-- > 0;) {
      at += index % axes[i].length * axes[i].stride;
      index /= axes[i].length;
    }
    return at;
  }
};

// The axes of `large` that were reduced to get `small`: aligned from the last one, those where small has length 1.
std::vector<bool> reduced_axes(const Shape &large, const Shape &small);

}  // namespace cohort
