// SPDX-License-Identifier: Apache-2.0
// The windows of Pooling and Pooling_v1, for the plain kernels of all backends. Compiled by nvcc, too.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "op/pooling.hpp"

namespace cohort {
namespace pooling {

using Axes = std::array<int64_t, 3>;

// The windows over up to three spatial axes (missing ones have length 1), and the distances in elements between
// neighbours in memory.
struct WindowGrid {
  int64_t planes, channels;  // planes: batch * channels
  Axes in, out, kernel, stride, pad;
  int64_t in_batch_step, in_channel_step, in_step;  // spatial places are in row-major order, in_step apart
  int64_t out_batch_step, out_channel_step, out_step;
  bool counts_pad;  // avg
  bool v1;  // Pooling_v1: means divide by the whole kernel, padding counts as zeros, each of several maxima gets the
            // gradient
};

// `lies_last`: the data lie channels-last, although the shape says otherwise.
inline WindowGrid windows_of(const PoolingAttrs &a, const Shape &data, const Shape &result, bool lies_last) {
  const PoolingWindow window = pooling_window(a, data);
  const bool last = lies_last || channels_last(a.layout);
  const int first = spatial_axis(a.layout), num_axes = data.rank() - 2;
  WindowGrid w;
  w.channels = data[channel_axis(a.layout, data.rank())];
  w.planes = data[0] * w.channels;
  w.in = w.out = w.kernel = w.stride = {1, 1, 1};
  w.pad = {0, 0, 0};
  for (int i = 0; i < num_axes; ++i) {
    const size_t to = size_t(3 - num_axes + i), from = size_t(i);
    w.in[to] = data[first + i];
    w.out[to] = result[first + i];
    w.kernel[to] = window.kernel[from];
    w.stride[to] = window.stride[from];
    w.pad[to] = window.pad[from];
  }
  const int64_t in_size = w.in[0] * w.in[1] * w.in[2], out_size = w.out[0] * w.out[1] * w.out[2];
  w.in_batch_step = w.channels * in_size;
  w.out_batch_step = w.channels * out_size;
  w.in_step = w.out_step = last ? w.channels : 1;
  w.in_channel_step = last ? 1 : in_size;
  w.out_channel_step = last ? 1 : out_size;
  w.counts_pad = a.count_include_pad.value_or(true);
  w.v1 = a.v1;
  return w;
}

// One window: the part [begin, end) of each axis that is inside the data, and the divisor of a mean.
struct WindowExtent {
  Axes begin, end;
  int64_t divisor;
  bool has_zeros = false;  // it contains padding that counts as zeros (Pooling_v1)
};

COHORT_HOST_DEVICE inline WindowExtent window_at(const WindowGrid &w, int64_t place) {
  const Axes at{place / (w.out[1] * w.out[2]), place / w.out[2] % w.out[1], place % w.out[2]};
  WindowExtent window;
  int64_t padded = 1, inside = 1;
  for (size_t a = 0; a < 3; ++a) {
    const int64_t start = at[a] * w.stride[a] - w.pad[a], stop = std::min(start + w.kernel[a], w.in[a] + w.pad[a]);
    padded *= w.v1 ? w.kernel[a] : stop - start;
    window.has_zeros = window.has_zeros || (w.v1 && (start < 0 || stop > w.in[a]));
    window.begin[a] = std::max<int64_t>(start, 0);
    window.end[a] = std::min(stop, w.in[a]);
    inside *= std::max<int64_t>(window.end[a] - window.begin[a], 0);
  }
  window.divisor = std::max<int64_t>(w.counts_pad || w.v1 ? padded : inside, 1);
  return window;
}

// Calls fn(offset of an element within its plane) for the elements of a window in row-major order.
template <typename Fn>
COHORT_HOST_DEVICE void for_each_in(const WindowGrid &w, const WindowExtent &window, Fn &&fn) {
  for (int64_t i = window.begin[0]; i < window.end[0]; ++i) {
    for (int64_t j = window.begin[1]; j < window.end[1]; ++j) {
      const int64_t row = (i * w.in[1] + j) * w.in[2];
      for (int64_t k = window.begin[2]; k < window.end[2]; ++k) fn((row + k) * w.in_step);
    }
  }
}

// The maximum of an empty window.
template <typename T>
COHORT_HOST_DEVICE typename Accumulator<T>::type lowest() {
  if constexpr (std::is_same_v<T, Float16>) return -65504.0f;
  if constexpr (std::is_same_v<T, Bfloat16>) return -3.38953139e38f;
  return std::numeric_limits<typename Accumulator<T>::type>::lowest();
}

template <typename Sum>
COHORT_HOST_DEVICE Sum power(Sum x, int p) {
  return p == 1 ? x : p == 2 ? x * x : x * x * x;
}

template <typename Sum>
COHORT_HOST_DEVICE Sum root(Sum x, int p) {
  return p == 1 ? x : p == 2 ? std::sqrt(x) : std::cbrt(x);
}

struct PoolRun {
  WindowGrid windows;
  PoolingAttrs::Type type;
  int p;

  COHORT_HOST_DEVICE int64_t in_plane(int64_t plane) const {
    return plane / windows.channels * windows.in_batch_step + plane % windows.channels * windows.in_channel_step;
  }
  COHORT_HOST_DEVICE int64_t out_plane(int64_t plane) const {
    return plane / windows.channels * windows.out_batch_step + plane % windows.channels * windows.out_channel_step;
  }
  // The i-th of all places of all planes, in memory order.
  struct At {
    int64_t plane, place;
  };
  COHORT_HOST_DEVICE At at(int64_t i, int64_t num) const {
    if (windows.in_channel_step != 1) return {i / num, i % num};
    const int64_t c = windows.channels;
    return {i / c / num * c + i % c, i / c % num};
  }
  COHORT_HOST_DEVICE int64_t num_places() const { return windows.out[0] * windows.out[1] * windows.out[2]; }
  COHORT_HOST_DEVICE int64_t num_elements() const { return windows.in[0] * windows.in[1] * windows.in[2]; }
};

inline PoolRun pool_run_of(const PoolingAttrs &a, const Shape &data, const Shape &result, bool lies_last = false) {
  return {windows_of(a, data, result, lies_last), a.pool_type, a.p_value.value_or(2)};
}

}  // namespace pooling
}  // namespace cohort
