// SPDX-License-Identifier: Apache-2.0
#include "op/image_layout.hpp"

namespace cohort {
namespace {

constexpr int64_t kMostWindow = 1 << 20;  // keeps products with array lengths within 64 bits

}  // namespace

std::vector<std::pair<const char *, ImageLayout>> layout_words(LayoutWords which) {
  std::vector<std::pair<const char *, ImageLayout>> words = {{"None", ImageLayout::kNone},
                                                             {"NCDHW", ImageLayout::kNCDHW},
                                                             {"NCHW", ImageLayout::kNCHW},
                                                             {"NCW", ImageLayout::kNCW}};
  if (which == LayoutWords::kChannelsSecond) return words;
  words.push_back({"NDHWC", ImageLayout::kNDHWC});
  words.push_back({"NHWC", ImageLayout::kNHWC});
  if (which == LayoutWords::kAll) words.push_back({"NWC", ImageLayout::kNWC});
  return words;
}

size_t spatial_axes(const Tuple &kernel) {
  if (kernel.empty() || kernel.size() > 3) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'kernel': expected 1 to 3 entries, found ", print_tuple(kernel)), "kernel");
  }
  return kernel.size();
}

void complete_window(Tuple &value, size_t num_axes, int64_t initial, int64_t low, const char *name) {
  if (value.empty()) value.assign(num_axes, initial);
  if (value.size() != num_axes) {
    throw Error(Code::kInvalidArgument,
                text("attribute '", name, "': expected ", num_axes, " entries, found ", print_tuple(value)), name);
  }
  for (int64_t entry : value) {
    if (entry < low || entry > kMostWindow) {
      throw Error(Code::kInvalidArgument,
                  text("attribute '", name, "': expected entries from ", low, " to ", kMostWindow, ", found ",
                       print_tuple(value)),
                  name);
    }
  }
}

void check_layout(ImageLayout layout, size_t num_axes) {
  size_t expected = num_axes;
  if (layout == ImageLayout::kNCW || layout == ImageLayout::kNWC) expected = 1;
  if (layout == ImageLayout::kNCHW || layout == ImageLayout::kNHWC) expected = 2;
  if (layout == ImageLayout::kNCDHW || layout == ImageLayout::kNDHWC) expected = 3;
  if (expected != num_axes) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'layout': expected a layout of ", num_axes, " spatial axes, found one of ", expected),
                "layout");
  }
}

}  // namespace cohort
