// SPDX-License-Identifier: Apache-2.0
// Convolution as plain sums, for the kernels of all backends: its sizes, and functions that compute one element of
// the result or of a gradient as a sum in a fixed order. Deconvolution is the backward pass to the data of a
// convolution. Compiled by nvcc, too.
#pragma once

#include <array>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "op/op.hpp"

namespace cohort {

// The sizes of a convolution over up to three spatial axes (missing ones have length 1), and how far apart neighbours
// along each axis lie in memory, in elements.
struct ConvolutionSizes {
  using Axes = std::array<int64_t, 3>;
  int64_t batch, groups, in_channels, out_channels;  // channels of one group
  Axes in, out, kernel, stride, dilate, pad;
  int64_t in_batch_step, in_channel_step, out_batch_step, out_channel_step, weight_out_step, weight_in_step;
  Axes in_step, out_step, weight_step;
};

// `data` and `result` are the input and output of the convolution, `weight` its filters; all row-major, with the
// channels in front of the spatial axes or, `last`, behind them.
ConvolutionSizes convolution_sizes(const Shape &data, const Shape &weight, const Shape &result, const Tuple &stride,
                                   const Tuple &dilate, const Tuple &pad, int64_t groups, bool last);

namespace convolution {

using Axes = ConvolutionSizes::Axes;

COHORT_HOST_DEVICE inline int64_t volume(const Axes &lengths) { return lengths[0] * lengths[1] * lengths[2]; }

// The place of the i-th element of a box.
COHORT_HOST_DEVICE inline Axes place_in(const Axes &lengths, int64_t i) {
  return {i / (lengths[1] * lengths[2]), i / lengths[2] % lengths[1], i % lengths[2]};
}

COHORT_HOST_DEVICE inline int64_t offset_of(const Axes &place, const Axes &step) {
  return place[0] * step[0] + place[1] * step[1] + place[2] * step[2];
}

// The kernel elements [begin, end) along one axis that lie on the data when the window starts at `start`.
struct KernelRange {
  int64_t begin, end;
};
COHORT_HOST_DEVICE inline KernelRange inside(int64_t start, int64_t dilate, int64_t kernel, int64_t length) {
  const int64_t begin = start >= 0 ? 0 : (-start + dilate - 1) / dilate;
  const int64_t end = start >= length ? 0 : (length - 1 - start) / dilate + 1;
  return {begin, kernel < end ? kernel : end};
}

// Place p of the result in output channel o of sample n, without the bias. x(i), w(i): elements of data and weight.
template <typename Sum, typename Data, typename Weight>
COHORT_HOST_DEVICE inline Sum result_at(const ConvolutionSizes &s, int64_t n, int64_t o, int64_t p, Sum sum,
                                        const Data &x, const Weight &w) {
  const int64_t g = o / s.out_channels, first = n * s.in_batch_step + g * s.in_channels * s.in_channel_step;
  const Axes at = place_in(s.out, p);
  Axes start{};
  KernelRange range[3];
  for (size_t a = 0; a < 3; ++a) {
    start[a] = at[a] * s.stride[a] - s.pad[a];
    range[a] = inside(start[a], s.dilate[a], s.kernel[a], s.in[a]);
  }
  for (int64_t c = 0; c < s.in_channels; ++c) {
    for (int64_t i = range[0].begin; i < range[0].end; ++i) {
      for (int64_t j = range[1].begin; j < range[1].end; ++j) {
        for (int64_t k = range[2].begin; k < range[2].end; ++k) {
          const Axes from{start[0] + i * s.dilate[0], start[1] + j * s.dilate[1], start[2] + k * s.dilate[2]};
          sum += x(first + c * s.in_channel_step + offset_of(from, s.in_step)) *
                 w(o * s.weight_out_step + c * s.weight_in_step + offset_of({i, j, k}, s.weight_step));
        }
      }
    }
  }
  return sum;
}

// Place p of the gradient of the data, in channel c of sample n; dy(i): elements of the head gradient.
template <typename Sum, typename Head, typename Weight>
COHORT_HOST_DEVICE inline Sum data_gradient_at(const ConvolutionSizes &s, int64_t n, int64_t c, int64_t p, Sum sum,
                                               const Head &dy, const Weight &w) {
  const int64_t first = c / s.in_channels * s.out_channels;
  const int64_t head = n * s.out_batch_step + first * s.out_channel_step;
  const int64_t weight = first * s.weight_out_step + c % s.in_channels * s.weight_in_step;
  const Axes at = place_in(s.in, p);
  for (int64_t q = 0; q < volume(s.kernel); ++q) {
    const Axes k = place_in(s.kernel, q);
    Axes from{};
    bool inside = true;
    for (size_t a = 0; a < 3; ++a) {
      const int64_t shifted = at[a] + s.pad[a] - k[a] * s.dilate[a];
      from[a] = shifted / s.stride[a];
      inside = inside && shifted >= 0 && shifted % s.stride[a] == 0 && from[a] < s.out[a];
    }
    if (!inside) continue;
    const int64_t y = offset_of(from, s.out_step), v = offset_of(k, s.weight_step);
    for (int64_t o = 0; o < s.out_channels; ++o) {
      sum += dy(head + o * s.out_channel_step + y) * w(weight + o * s.weight_out_step + v);
    }
  }
  return sum;
}

// The contribution of sample n and of places [begin, end) of the result to element q of the filter gradient, from
// channel c of its group to output channel o.
template <typename Sum, typename Head, typename Data>
COHORT_HOST_DEVICE inline Sum weight_gradient_at(const ConvolutionSizes &s, int64_t o, int64_t c, int64_t q, int64_t n,
                                                 int64_t begin, int64_t end, Sum sum, const Head &dy, const Data &x) {
  const int64_t channel = o / s.out_channels * s.in_channels + c;
  const int64_t head = n * s.out_batch_step + o * s.out_channel_step;
  const int64_t data = n * s.in_batch_step + channel * s.in_channel_step;
  const Axes k = place_in(s.kernel, q);
  for (int64_t p = begin; p < end; ++p) {
    const Axes at = place_in(s.out, p);
    Axes from{};
    bool inside = true;
    for (size_t a = 0; a < 3; ++a) {
      from[a] = at[a] * s.stride[a] - s.pad[a] + k[a] * s.dilate[a];
      inside = inside && from[a] >= 0 && from[a] < s.in[a];
    }
    if (inside) sum += dy(head + offset_of(at, s.out_step)) * x(data + offset_of(from, s.in_step));
  }
  return sum;
}

}  // namespace convolution
}  // namespace cohort
