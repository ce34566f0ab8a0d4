// SPDX-License-Identifier: Apache-2.0
// The operands of a convolution as matrices (im2col): the column of a place on one side of the convolution, such as the
// result's, holds the elements that its window covers on the other side, 0 outside the image. Its depth runs over
// channels and taps of the window, in the order of the filters: channel by channel if channels come first, tap by tap
// if they come last. The depth is padded with zeros to whole vectors.
//   Channels last:   columns [place][group][depth], over the places of all samples.
//   Channels first:  columns [block][group][depth][length]. A block is a sample and `length` its places; or there is
//                    one block with the places of all samples, padded with zeros to whole vectors.
// A sample, the filters, and the elements gathered at a time number fewer than 2^31 each: indices within them have 32
// bits, and divisions are multiplications. Pointers to images start at the sample that holds the first place.
#pragma once

#include "cuda/op/compute_type.cuh"
#include "cuda/op/divisor.cuh"
#include "kernels/convolution_sizes.hpp"

namespace cohort::columns {

// One side of a convolution: its data and their gradient, or its result and the gradient of that.
struct Side {
  Divisor places, lines, row;  // of a sample; lines of a plane, places of a row
  int32_t lengths[4] = {};     // of three axes
  int64_t batch_step, channel_step;
  int64_t channels, place_step;  // channels of one group

  Side() = default;
  Side(const ConvolutionSizes &s, bool of_data)
      : batch_step(of_data ? s.in_batch_step : s.out_batch_step),
        channel_step(of_data ? s.in_channel_step : s.out_channel_step),
        channels(of_data ? s.in_channels : s.out_channels),
        place_step(of_data ? s.in_step[2] : s.out_step[2]) {
    const ConvolutionSizes::Axes &all = of_data ? s.in : s.out;
    for (size_t a = 0; a < 3; ++a) lengths[a] = int32_t(all[a]);
    places = Divisor(convolution::volume(all));
    lines = Divisor(all[1]);
    row = Divisor(all[2]);
  }
};

// The window of a place on the other side: its first tap is at place * stride + start, the others are `step` apart.
struct ColumnWindow {
  Divisor lines, row;  // of taps
  int32_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, start[3] = {0, 0, 0}, step[3] = {1, 1, 1};
  int64_t taps = 1;

  ColumnWindow() = default;  // of one place
  // Windows over the data, one per place of the result; with of_data, windows over the result, one per place of the
  // data (strides must be 1).
  ColumnWindow(const ConvolutionSizes &s, bool of_data)
      : lines(s.kernel[1]), row(s.kernel[2]), taps(convolution::volume(s.kernel)) {
    for (size_t a = 0; a < 3; ++a) {
      kernel[a] = int32_t(s.kernel[a]);
      if (!of_data) stride[a] = int32_t(s.stride[a]);
      start[a] = int32_t(of_data ? s.pad[a] : -s.pad[a]);
      step[a] = int32_t(of_data ? -s.dilate[a] : s.dilate[a]);
    }
  }
};

// A place and the start of its window.
struct WindowOrigin {
  uint32_t sample;
  int32_t at[3];
  __device__ WindowOrigin(const Side &to, const ColumnWindow &window, uint32_t place) : sample(place) {
    uint32_t rest = to.places.split(&sample);
    at[2] = int32_t(to.row.split(&rest));
    at[1] = int32_t(to.lines.split(&rest));
    at[0] = int32_t(rest);
    for (int a = 0; a < 3; ++a) at[a] = at[a] * window.stride[a] + window.start[a];
  }
};

// Gathers columns from images with channels first. One thread gathers some channels of one place, so that neighbouring
// threads access neighbouring memory. `first` and `count` select places, counted over all samples; further columns are
// 0.
template <typename T>
struct GatherRows {
  Side from, to;
  ColumnWindow window;
  const T *image;
  T *columns;
  Divisor length, parts, groups;           // parts: of the channels
  int64_t row, each, depth, first, count;  // row: the stride of the depth

  __device__ void operator()(int64_t unit) const {
    auto rest = uint32_t(unit);
    const uint32_t at = length.split(&rest), part = parts.split(&rest), group = groups.split(&rest);
    const uint32_t along = rest * length.by + at;
    const int64_t begin = part * each, end = begin + each < from.channels ? begin + each : from.channels;
    T *column = columns + ((int64_t(rest) * groups.by + group) * depth + begin * window.taps) * row + at;
    const auto put = [&](T value) {
      *column = value;
      column += row;
    };
    const bool is_place = along < count;
    const WindowOrigin origin(to, window, uint32_t(first) + (is_place ? along : 0));
    const T *plane = image + origin.sample * from.batch_step + (group * from.channels + begin) * from.channel_step;
    for (int64_t c = begin; c < end; ++c, plane += from.channel_step) {
      for (int i = 0, x = origin.at[0]; i < window.kernel[0]; ++i, x += window.step[0]) {
        const bool in_x = is_place && uint32_t(x) < uint32_t(from.lengths[0]);
        for (int j = 0, y = origin.at[1]; j < window.kernel[1]; ++j, y += window.step[1]) {
          const bool in_y = in_x && uint32_t(y) < uint32_t(from.lengths[1]);
          const T *const line = plane + (x * from.lengths[1] + y) * from.lengths[2];
          for (int k = 0, z = origin.at[2]; k < window.kernel[2]; ++k, z += window.step[2]) {
            put(in_y && uint32_t(z) < uint32_t(from.lengths[2]) ? line[z] : T(0));
          }
        }
      }
    }
    if (end != from.channels) return;
    for (int64_t d = from.channels * window.taps; d < depth; ++d) put(T(0));
  }
};

// Gathers columns from images with channels last. One thread writes one vector; with `whole`, each vector lies in one
// tap and is read as a vector.
template <typename T>
struct GatherPlaces {
  Side from, to;
  ColumnWindow window;
  const T *image;
  T *columns;
  Divisor vectors, groups, channels;
  int64_t depth, first, whole;

  __device__ bool find(const WindowOrigin &origin, uint32_t tap, int64_t *at) const {
    const auto k = int32_t(window.row.split(&tap));
    const auto j = int32_t(window.lines.split(&tap));
    const int32_t x = origin.at[0] + int32_t(tap) * window.step[0], y = origin.at[1] + j * window.step[1],
                  z = origin.at[2] + k * window.step[2];
    *at = int64_t((x * from.lengths[1] + y) * from.lengths[2] + z) * from.place_step;
    return uint32_t(x) < uint32_t(from.lengths[0]) && uint32_t(y) < uint32_t(from.lengths[1]) &&
           uint32_t(z) < uint32_t(from.lengths[2]);
  }
  __device__ void operator()(int64_t unit) const {
    constexpr int kSize = Vector<T>::kSize;
    auto place = uint32_t(unit);
    const uint32_t begin = vectors.split(&place) * kSize, group = groups.split(&place);
    const WindowOrigin origin(to, window, uint32_t(first) + place);
    const T *const sample = image + origin.sample * from.batch_step + int64_t(group) * channels.by;
    uint32_t tap = begin, channel = channels.split(&tap);
    Vector<T> vector{};
    int64_t at = 0;
    bool inside = find(origin, tap, &at) && tap < window.taps;
    if (whole) {
      if (inside) vector = load_vector(sample + at + channel);
    } else {
      for (int i = 0; i < kSize; ++i) {
        if (inside) vector.at[i] = sample[at + channel];
        if (++channel < channels.by) continue;
        channel = 0;
        ++tap;
        inside = find(origin, tap, &at) && tap < window.taps;
      }
    }
    store_vector(columns + (int64_t(place) * groups.by + group) * depth + begin, vector);
  }
};

// Arranges filters as [group][row][depth]; rows are the channels of the side that is computed.
template <typename T>
struct ArrangeFilters {
  const T *from;
  T *to;
  Divisor depth, rows, inner;  // inner: channels if they come last, else taps
  int64_t filled, taps_inside;
  int64_t group_step, row_step, channel_step, tap_step;

  __device__ void operator()(int64_t unit) const {
    auto rest = uint32_t(unit);
    uint32_t outer = depth.split(&rest);
    const bool is_there = outer < filled;
    const uint32_t row = rows.split(&rest), inside = inner.split(&outer);
    const int64_t at =
        taps_inside ? outer * channel_step + inside * tap_step : outer * tap_step + inside * channel_step;
    to[unit] = is_there ? from[rest * group_step + row * row_step + at] : T(0);
  }
};

// Rounds rows [group and channel][length], over the places of all samples, into images with channels first, after
// adding the bias, if there is one.
template <typename C, typename T>
struct SpreadRows {
  Side to;
  const C *rows;
  const T *bias;
  T *image;
  Divisor count;
  int64_t length, first;

  __device__ void operator()(int64_t unit) const {
    auto row = uint32_t(unit);
    const uint32_t along = count.split(&row);
    uint32_t sample = uint32_t(first) + along;
    const uint32_t place = to.places.split(&sample);
    C sum = rows[row * length + along];
    if (bias) sum += to_compute(bias[row]);
    image[sample * to.batch_step + row * to.channel_step + place] = from_compute<T>(sum);
  }
};

// Sums, for each element of the data's gradient, its entries in the columns of places of the result, which are strides
// apart; 0 if no window covers the element. Adds the bias, if there is one.
template <typename C>
struct SumColumns {
  Side from, to;  // the result's side, the data's
  Divisor stride[3];
  int32_t kernel[3], dilate[3], pad[3], spare;
  const C *columns;
  Elements bias, grad;
  int64_t at, last;  // the start of the chunk in the gradient
  Divisor channels, groups;
  int64_t sample_step, group_step, channel_step, tap_step, place_step;

  __device__ void operator()(int64_t unit) const {
    auto rest = uint32_t(unit);
    uint32_t channel = 0, group = 0, place = 0;
    if (last) {
      channel = channels.split(&rest), group = groups.split(&rest), place = to.places.split(&rest);
    } else {
      place = to.places.split(&rest), channel = channels.split(&rest), group = groups.split(&rest);
    }
    const C *const own = columns + rest * sample_step + group * group_step + channel * channel_step;
    const auto z = int32_t(to.row.split(&place)), y = int32_t(to.lines.split(&place)), x = int32_t(place);
    C sum = bias.data ? load<C>(bias, group * channels.by + channel) : C(0);
    for (int i = 0; i < kernel[0]; ++i) {
      int32_t p = 0, q = 0, r = 0;
      if (!meets(0, x, i, &p)) continue;
      for (int j = 0; j < kernel[1]; ++j) {
        if (!meets(1, y, j, &q)) continue;
        for (int k = 0; k < kernel[2]; ++k) {
          if (!meets(2, z, k, &r)) continue;
          const int64_t tap = (i * kernel[1] + j) * kernel[2] + k;
          sum += own[tap * tap_step + ((p * from.lengths[1] + q) * from.lengths[2] + r) * place_step];
        }
      }
    }
    store(grad, at + unit, sum);
  }
  // Whether the k-th tap of some window lies on `where`; *place: the place of that window.
  __device__ bool meets(int axis, int32_t where, int k, int32_t *place) const {
    const int32_t shifted = where + pad[axis] - k * dilate[axis];
    if (shifted < 0) return false;
    auto along = uint32_t(shifted);
    const bool on_one = stride[axis].split(&along) == 0;
    *place = int32_t(along);
    return on_one && *place < from.lengths[axis];
  }
};

// Adds up partial sums [part][row][depth] in order, after those already in `sums` unless these are the first. Writes to
// `grad`, without the padding of the depth, if that is given, else to `sums`.
template <typename C>
struct JoinParts {
  const C *parts;
  C *sums;
  Elements grad;
  Divisor depth;
  int64_t filled, num_parts, size, is_first;

  __device__ void operator()(int64_t i) const {
    C sum = is_first ? C(0) : sums[i];
    for (int64_t part = 0; part < num_parts; ++part) sum += parts[part * size + i];
    if (!grad.data) {
      sums[i] = sum;
      return;
    }
    auto row = uint32_t(i);
    const uint32_t d = depth.split(&row);
    if (d < filled) store(grad, row * filled + d, sum);
  }
};

}  // namespace cohort::columns
