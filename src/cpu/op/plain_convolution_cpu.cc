// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/plain_convolution.hpp"

#include <algorithm>

#include "base/dtype.hpp"
#include "cpu/parallel.hpp"

namespace cohort {
namespace {

using namespace convolution;

template <typename Sum, typename T>
auto reader_of(const T *from) {
  return [=](int64_t i) { return cast_element<Sum>(from[i]); };
}

template <typename T>
void forward(const ConvolutionSizes &s, const T *data, const T *weight, const T *bias, T *result, const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const int64_t places = volume(s.out), channels = s.groups * s.out_channels;
  const auto x = reader_of<Sum>(data), w = reader_of<Sum>(weight);
  parallel_for(lane, s.batch * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / channels, o = row % channels;
      const Sum start = bias ? cast_element<Sum>(bias[o]) : Sum(0);
      T *y = result + n * s.out_batch_step + o * s.out_channel_step;
      for (int64_t p = 0; p < places; ++p) {
        y[offset_of(place_in(s.out, p), s.out_step)] = cast_element<T>(result_at(s, n, o, p, start, x, w));
      }
    }
  });
}

template <typename T>
void backward_data(const ConvolutionSizes &s, const T *head, const T *weight, const T *bias, T *grad,
                   const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const int64_t places = volume(s.in), channels = s.groups * s.in_channels;
  const auto dy = reader_of<Sum>(head), w = reader_of<Sum>(weight);
  parallel_for(lane, s.batch * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / channels, c = row % channels;
      const Sum start = bias ? cast_element<Sum>(bias[c]) : Sum(0);
      T *dx = grad + n * s.in_batch_step + c * s.in_channel_step;
      for (int64_t p = 0; p < places; ++p) {
        dx[offset_of(place_in(s.in, p), s.in_step)] = cast_element<T>(data_gradient_at(s, n, c, p, start, dy, w));
      }
    }
  });
}

template <typename T>
void backward_weight(const ConvolutionSizes &s, const T *head, const T *data, T *grad, const Lane &lane) {
  using Sum = typename Accumulator<T>::type;
  const int64_t kernel = volume(s.kernel), places = volume(s.out);
  const auto dy = reader_of<Sum>(head), x = reader_of<Sum>(data);
  parallel_for(lane, s.groups * s.out_channels * s.in_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t o = row / s.in_channels, c = row % s.in_channels;
      for (int64_t q = 0; q < kernel; ++q) {
        Sum sum = 0;
        for (int64_t n = 0; n < s.batch; ++n) sum = weight_gradient_at(s, o, c, q, n, 0, places, sum, dy, x);
        grad[o * s.weight_out_step + c * s.weight_in_step + offset_of(place_in(s.kernel, q), s.weight_step)] =
            cast_element<T>(sum);
      }
    }
  });
}

bool has_window_inside(const ConvolutionSizes &s, size_t axis) {
  const int64_t first = (s.pad[axis] + s.stride[axis] - 1) / s.stride[axis];
  const int64_t end = first * s.stride[axis] - s.pad[axis] + (s.kernel[axis] - 1) * s.dilate[axis] + 1;
  return first < s.out[axis] && end <= s.in[axis];
}

}  // namespace

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
  const ChannelRuns runs = of_data ? ChannelRuns{1, s.in_channel_step, s.in_batch_step, s.in_step}
                                   : ChannelRuns{1, s.out_channel_step, s.out_batch_step, s.out_step};
  sum_channels(s, runs, dtype, of_data, values, sums, lane);
}

void sum_channels(const ConvolutionSizes &s, const ChannelRuns &runs, Dtype dtype, bool of_data, const void *values,
                  void *sums, const Lane &lane) {
  const int64_t channels = s.groups * (of_data ? s.in_channels : s.out_channels);
  const Axes &lengths = of_data ? s.in : s.out;
  dispatch_float(dtype, "Convolution", [&](auto type) {
    using T = decltype(type);
    parallel_for(lane, channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double sum = 0;
        for (int64_t n = 0; n < s.batch; ++n) {
          const T *const from = static_cast<const T *>(values) + n * runs.batch_step + runs.channel(c);
          for (int64_t i = 0; i < lengths[0]; ++i) {
            for (int64_t j = 0; j < lengths[1]; ++j) {
              for (int64_t k = 0; k < lengths[2]; ++k) {
                sum += cast_element<double>(from[offset_of({i, j, k}, runs.step)]);
              }
            }
          }
        }
        static_cast<T *>(sums)[c] = cast_element<T>(sum);
      }
    });
  });
}

std::string lacks_weight_gradient(const ConvolutionSizes &s, int num_axes, Dtype dtype) {
  const bool narrow = dtype == Dtype::kBfloat16;
  const bool by_depth = num_axes == 3 && s.stride[0] > 1 && s.out[0] > 1 && !has_window_inside(s, 0) &&
                        (narrow || s.pad[0] > s.stride[0]);
  const bool by_height = num_axes == 3 && narrow && s.out[1] == 1 && !has_window_inside(s, 1);
  const bool by_width = narrow && s.pad[2] > 0 && s.in[2] < s.stride[2];
  return by_depth || by_height || by_width ? "oneDNN's gradient of this weight is wrong" : "";
}

}  // namespace cohort
