// SPDX-License-Identifier: Apache-2.0
// Parts of arrays: slice, slice_axis, slice_like, _slice_assign, _slice_assign_scalar, Crop, _split_v2, reverse.
#pragma once

#include "op/op.hpp"

namespace cohort {

using OptionalTuple = std::vector<std::optional<int64_t>>;  // begin=(0, None)

// Backward: head gradient. _slice_assign: lhs with rhs put in, backward: head gradient.
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
  Tuple indices;  // where the parts begin; with sections set, of no meaning
  int32_t axis;
  bool squeeze_axis;
  int32_t sections;  // parts that differ by 1 at most; 0: by indices
};

struct ReverseAttrs {
  Tuple axis;
};

// A part of an array: along each axis `length` elements from `begin`, `step` apart. All in range.
struct Window {
  std::vector<int64_t> begin, length, step;
  Shape shape() const { return Shape(length.begin(), length.end()); }
};
Window window_of(const SliceAttrs &a, const Shape &data);
Window window_of(const SliceAxisAttrs &a, const Shape &data);
Window window_like(const SliceLikeAttrs &a, const Shape &data, const Shape &like);
Window window_of(const CropAttrs &a, const Shape &data, const Shape *like);  // like: of the second input, or null
// Where part i of _split_v2 begins and ends on its axis.
std::vector<int64_t> split_points(const SplitAttrs &a, int64_t length);

}  // namespace cohort
