// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution_sizes.hpp"

#include <algorithm>

namespace cohort {
namespace {

using Axes = ConvolutionSizes::Axes;

// Strides of a row-major array: batch (or filters), channels, spatial axes.
void steps_of(const Shape &shape, bool last, int64_t *outer, int64_t *channel, Axes *spatial) {
  const int rank = shape.rank(), num_axes = rank - 2;
  spatial->fill(0);
  int64_t step = 1;
  if (last) *channel = step, step *= shape[rank - 1];
  for (int i = num_axes; i-- > 0;) {
    (*spatial)[size_t(3 - num_axes + i)] = step;
    step *= shape[(last ? 1 : 2) + i];
  }
  if (!last) *channel = step, step *= shape[1];
  *outer = step;
}

Axes lengths_of(const Shape &shape, bool last) {
  Axes lengths{1, 1, 1};
  const int num_axes = shape.rank() - 2;
  for (int i = 0; i < num_axes; ++i) lengths[size_t(3 - num_axes + i)] = shape[(last ? 1 : 2) + i];
  return lengths;
}

Axes spread(const Tuple &value, int64_t rest) {
  Axes axes{rest, rest, rest};
  std::copy(value.begin(), value.end(), axes.end() - ptrdiff_t(value.size()));
  return axes;
}

}  // namespace

ConvolutionSizes convolution_sizes(const Shape &data, const Shape &weight, const Shape &result, const Tuple &stride,
                                   const Tuple &dilate, const Tuple &pad, int64_t groups, bool last) {
  ConvolutionSizes s;
  const int channel = last ? data.rank() - 1 : 1;
  s.batch = data[0];
  s.groups = groups;
  s.in_channels = data[channel] / groups;
  s.out_channels = result[channel] / groups;
  s.in = lengths_of(data, last);
  s.out = lengths_of(result, last);
  s.kernel = lengths_of(weight, last);
  s.stride = spread(stride, 1);
  s.dilate = spread(dilate, 1);
  s.pad = spread(pad, 0);
  steps_of(data, last, &s.in_batch_step, &s.in_channel_step, &s.in_step);
  steps_of(result, last, &s.out_batch_step, &s.out_channel_step, &s.out_step);
  steps_of(weight, last, &s.weight_out_step, &s.weight_in_step, &s.weight_step);
  return s;
}

}  // namespace cohort
