// SPDX-License-Identifier: Apache-2.0
// Slices of arrays: slice, slice_axis, slice_like, _slice_assign, _slice_assign_scalar, Crop, _split_v2, reverse.
#pragma once

#include "op/op.hpp"

namespace cohort {

using OptionalTuple = std::vector<std::optional<int64_t>>;  // begin=(0, None)

// Backward: head gradient. _slice_assign returns lhs with rhs written into the slice; backward: head gradient.
struct SliceAttrs {
  OptionalTuple begin, end, step;
  double scalar;  // _slice_assign_scalar
};

struct SliceAxisAttrs {
  int32_t axis;
  int64_t begin;
  std::optional<int64_t> end;
};

struct SliceLikeAttrs {
  Tuple axes;  // empty: all
};

struct CropAttrs {
  Tuple offset, h_w;
  bool center_crop;
};

struct SplitAttrs {
  Tuple indices;  // where parts begin; ignored if sections is set
  int32_t axis;
  bool squeeze_axis;
  int32_t sections;  // number of parts, whose lengths differ by at most 1; 0: use indices
};

struct ReverseAttrs {
  Tuple axis;
};

// A strided slice: along each axis `length` elements from `begin`, `step` apart. All in range.
struct SliceWindow {
  std::vector<int64_t> begin, length, step;
  Shape shape() const { return Shape(length.begin(), length.end()); }
};
SliceWindow window_of(const SliceAttrs &a, const Shape &data);
SliceWindow window_of(const SliceAxisAttrs &a, const Shape &data);
SliceWindow window_like(const SliceLikeAttrs &a, const Shape &data, const Shape &like);
// like: shape of the second input, or null.
SliceWindow window_of(const CropAttrs &a, const Shape &data, const Shape *like);
// Boundaries of the parts of _split_v2 along its axis: part i is from entry i to entry i + 1.
std::vector<int64_t> split_points(const SplitAttrs &a, int64_t length);

}  // namespace cohort
