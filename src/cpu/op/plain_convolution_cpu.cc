// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/plain_convolution.hpp"

#include <algorithm>

#include "base/dtype.hpp"
#include "cpu/parallel.hpp"

namespace cohort {
namespace {

using Axes = ConvolutionSizes::Axes;

int64_t volume(const Axes &lengths) { return lengths[0] * lengths[1] * lengths[2]; }

// The place of the i-th element of a box.
Axes place_in(const Axes &lengths, int64_t i) {
  return {i / (lengths[1] * lengths[2]), i / lengths[2] % lengths[1], i % lengths[2]};
}

int64_t offset_of(const Axes &place, const Axes &step) {
  return place[0] * step[0] + place[1] * step[1] + place[2] * step[2];
}

// Kernel elements [begin, end) of one axis that meet the data when the window starts at `start`.
struct Range {
  int64_t begin, end;
};
Range inside(int64_t start, int64_t dilate, int64_t kernel, int64_t length) {
  const int64_t begin = start >= 0 ? 0 : (-start + dilate - 1) / dilate;
  const int64_t end = start >= length ? 0 : (length - 1 - start) / dilate + 1;
  return {begin, std::min(kernel, end)};
}

template <typename T>
void forward(const ConvolutionSizes &s, const T *data, const T *weight, const T *bias, T *result, const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const int64_t places = volume(s.out), channels = s.groups * s.out_channels;
  parallel_for(lane, s.batch * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / channels, o = row % channels, g = o / s.out_channels;
      const T *x = data + n * s.in_batch_step + g * s.in_channels * s.in_channel_step,
              *w = weight + o * s.weight_out_step;
      T *y = result + n * s.out_batch_step + o * s.out_channel_step;
      for (int64_t p = 0; p < places; ++p) {
        const Axes at = place_in(s.out, p);
        Axes start;
        Range range[3];
        for (size_t a = 0; a < 3; ++a) {
          start[a] = at[a] * s.stride[a] - s.pad[a];
          range[a] = inside(start[a], s.dilate[a], s.kernel[a], s.in[a]);
        }
        Sum sum = bias ? cast_element<Sum>(bias[o]) : Sum(0);
        for (int64_t c = 0; c < s.in_channels; ++c) {
          for (int64_t i = range[0].begin; i < range[0].end; ++i) {
            for (int64_t j = range[1].begin; j < range[1].end; ++j) {
              for (int64_t k = range[2].begin; k < range[2].end; ++k) {
                const Axes from{start[0] + i * s.dilate[0], start[1] + j * s.dilate[1], start[2] + k * s.dilate[2]};
                sum += cast_element<Sum>(x[c * s.in_channel_step + offset_of(from, s.in_step)]) *
                       cast_element<Sum>(w[c * s.weight_in_step + offset_of({i, j, k}, s.weight_step)]);
              }
            }
          }
        }
        y[offset_of(at, s.out_step)] = cast_element<T>(sum);
      }
    }
  });
}

template <typename T>
void backward_data(const ConvolutionSizes &s, const T *head, const T *weight, const T *bias, T *grad,
                   const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const int64_t places = volume(s.in), channels = s.groups * s.in_channels;
  parallel_for(lane, s.batch * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / channels, c = row % channels, g = c / s.in_channels, first = g * s.out_channels;
      const T *dy = head + n * s.out_batch_step + first * s.out_channel_step;
      const T *w = weight + first * s.weight_out_step + c % s.in_channels * s.weight_in_step;
      T *dx = grad + n * s.in_batch_step + c * s.in_channel_step;
      for (int64_t p = 0; p < places; ++p) {
        const Axes at = place_in(s.in, p);
        Sum sum = bias ? cast_element<Sum>(bias[c]) : Sum(0);
        for (int64_t q = 0; q < volume(s.kernel); ++q) {
          const Axes k = place_in(s.kernel, q);
          Axes from;
          bool meets = true;
          for (size_t a = 0; a < 3; ++a) {
            const int64_t shifted = at[a] + s.pad[a] - k[a] * s.dilate[a];
            from[a] = shifted / s.stride[a];
            meets = meets && shifted >= 0 && shifted % s.stride[a] == 0 && from[a] < s.out[a];
          }
          if (!meets) continue;
          const int64_t y = offset_of(from, s.out_step), v = offset_of(k, s.weight_step);
          for (int64_t o = 0; o < s.out_channels; ++o) {
            sum += cast_element<Sum>(dy[o * s.out_channel_step + y]) * cast_element<Sum>(w[o * s.weight_out_step + v]);
          }
        }
        dx[offset_of(at, s.in_step)] = cast_element<T>(sum);
      }
    }
  });
}

template <typename T>
void backward_weight(const ConvolutionSizes &s, const T *head, const T *data, T *grad, const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const int64_t kernel = volume(s.kernel), places = volume(s.out);
  parallel_for(lane, s.groups * s.out_channels * s.in_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t o = row / s.in_channels, c = row % s.in_channels, g = o / s.out_channels;
      const T *dy = head + o * s.out_channel_step, *x = data + (g * s.in_channels + c) * s.in_channel_step;
      for (int64_t q = 0; q < kernel; ++q) {
        const Axes k = place_in(s.kernel, q);
        Sum sum = 0;
        for (int64_t n = 0; n < s.batch; ++n) {
          for (int64_t p = 0; p < places; ++p) {
            const Axes at = place_in(s.out, p);
            Axes from;
            bool meets = true;
            for (size_t a = 0; a < 3; ++a) {
              from[a] = at[a] * s.stride[a] - s.pad[a] + k[a] * s.dilate[a];
              meets = meets && from[a] >= 0 && from[a] < s.in[a];
            }
            if (!meets) continue;
            sum += cast_element<Sum>(dy[n * s.out_batch_step + offset_of(at, s.out_step)]) *
                   cast_element<Sum>(x[n * s.in_batch_step + offset_of(from, s.in_step)]);
          }
        }
        grad[o * s.weight_out_step + c * s.weight_in_step + offset_of(k, s.weight_step)] = cast_element<T>(sum);
      }
    }
  });
}

template <typename T>
void sum_each_channel(const ConvolutionSizes &s, bool of_data, const T *values, T *sums, const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const int64_t channels = s.groups * (of_data ? s.in_channels : s.out_channels);
  const int64_t batch_step = of_data ? s.in_batch_step : s.out_batch_step;
  const int64_t channel_step = of_data ? s.in_channel_step : s.out_channel_step;
  const Axes &lengths = of_data ? s.in : s.out, &step = of_data ? s.in_step : s.out_step;
  parallel_for(lane, channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      Sum sum = 0;
      for (int64_t n = 0; n < s.batch; ++n) {
        const T *from = values + n * batch_step + c * channel_step;
        for (int64_t i = 0; i < lengths[0]; ++i) {
          for (int64_t j = 0; j < lengths[1]; ++j) {
            for (int64_t k = 0; k < lengths[2]; ++k) sum += cast_element<Sum>(from[offset_of({i, j, k}, step)]);
          }
        }
      }
      sums[c] = cast_element<T>(sum);
    }
  });
}

// Steps of a row-major array: batch (or filters), channels, spatial axes.
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

void convolve(const ConvolutionSizes &s, Dtype dtype, const void *data, const void *weight, const void *bias,
              void *result, const Lane &lane) {
  dispatch_float(dtype, "Convolution", [&](auto type) {
    using T = decltype(type);
    forward(s, static_cast<const T *>(data), static_cast<const T *>(weight), static_cast<const T *>(bias),
            static_cast<T *>(result), lane);
  });
}

void convolve_backward_data(const ConvolutionSizes &s, Dtype dtype, const void *head, const void *weight,
                            const void *bias, void *data_grad, const Lane &lane) {
  dispatch_float(dtype, "Convolution", [&](auto type) {
    using T = decltype(type);
    backward_data(s, static_cast<const T *>(head), static_cast<const T *>(weight), static_cast<const T *>(bias),
                  static_cast<T *>(data_grad), lane);
  });
}

void convolve_backward_weight(const ConvolutionSizes &s, Dtype dtype, const void *head, const void *data,
                              void *weight_grad, const Lane &lane) {
  dispatch_float(dtype, "Convolution", [&](auto type) {
    using T = decltype(type);
    backward_weight(s, static_cast<const T *>(head), static_cast<const T *>(data), static_cast<T *>(weight_grad), lane);
  });
}

void sum_channels(const ConvolutionSizes &s, Dtype dtype, bool of_data, const void *values, void *sums,
                  const Lane &lane) {
  dispatch_float(dtype, "Convolution", [&](auto type) {
    using T = decltype(type);
    sum_each_channel(s, of_data, static_cast<const T *>(values), static_cast<T *>(sums), lane);
  });
}

}  // namespace cohort
