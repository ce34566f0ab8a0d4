// SPDX-License-Identifier: Apache-2.0
// The layout attribute of convolution and pooling, and helpers for their shape inference.
#pragma once

#include "op/op.hpp"

namespace cohort {

enum class ImageLayout : int32_t { kNone, kNCW, kNCHW, kNCDHW, kNWC, kNHWC, kNDHWC };

// The words of a layout attribute, in MXNet's order: layouts with channels before the spatial axes, and those with
// channels last that the operator supports.
enum class LayoutWords { kChannelsSecond, kAllButNWC, kAll };
std::vector<std::pair<const char *, ImageLayout>> layout_words(LayoutWords which);

inline bool channels_last(ImageLayout layout) {
  return layout == ImageLayout::kNWC || layout == ImageLayout::kNHWC || layout == ImageLayout::kNDHWC;
}

// Positions of the channel axis and of the first spatial axis.
inline int channel_axis(ImageLayout layout, int rank) { return channels_last(layout) ? rank - 1 : 1; }
inline int spatial_axis(ImageLayout layout) { return channels_last(layout) ? 1 : 2; }

// The number of spatial axes, 1 to 3. Throws kInvalidArgument for other kernels.
size_t spatial_axes(const Tuple &kernel);
// Extends an empty `value` to one entry of `initial` per spatial axis. Throws kInvalidArgument if the length differs
// from `num_axes`, or an entry is below `low`.
void complete_window(Tuple &value, size_t num_axes, int64_t initial, int64_t low, const char *name);
// Throws kInvalidArgument if the layout has a different number of spatial axes.
void check_layout(ImageLayout layout, size_t num_axes);

}  // namespace cohort
