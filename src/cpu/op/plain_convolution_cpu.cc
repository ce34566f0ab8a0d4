// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/plain_convolution.hpp"

#include <algorithm>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "cpu/op/gemm.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace {

using namespace convolution;

constexpr int64_t kColumnBytes = 1 << 19;  // of a chunk's columns: about half of a core's second cache
constexpr int64_t kLeastPlaces = 16, kWeightPlaces = 256;

// An element of the window along one axis: place t of the result takes the source's element stride * t + offset.
struct WindowTap {
  int64_t kernel, offset;
};

// Places that take the same elements of the kernel from the source, along each axis: all places of a forward pass. In
// a backward pass to the data of stride s, which has s such classes, every s-th one.
struct PlaceClass {
  std::vector<WindowTap> taps[3];
  Axes places, stride;
  Axes step;  // of neighbouring places in the result, in elements
  int64_t first = 0;
  int64_t num_taps() const { return int64_t(taps[0].size() * taps[1].size() * taps[2].size()); }
};

// A pass whose result is, at each place, a product of the filters with elements of the source.
struct WindowPass {
  int64_t batch, groups, in_channels, out_channels;  // channels of a group
  Axes lengths, source_step;                         // of the source
  int64_t source_batch_step, source_channel_step, result_batch_step, result_channel_step;
  int64_t weight_group_step, weight_in_step, weight_out_step;
  Axes weight_step;
  std::vector<PlaceClass> classes;
};

WindowPass forward_pass(const ConvolutionSizes &s) {
  WindowPass pass{s.batch,
                  s.groups,
                  s.in_channels,
                  s.out_channels,
                  s.in,
                  s.in_step,
                  s.in_batch_step,
                  s.in_channel_step,
                  s.out_batch_step,
                  s.out_channel_step,
                  s.out_channels * s.weight_out_step,
                  s.weight_in_step,
                  s.weight_out_step,
                  s.weight_step,
                  {}};
  PlaceClass &all = pass.classes.emplace_back();
  all.places = s.out;
  all.stride = s.stride;
  all.step = s.out_step;
  for (size_t a = 0; a < 3; ++a) {
    for (int64_t k = 0; k < s.kernel[a]; ++k) all.taps[a].push_back({k, k * s.dilate[a] - s.pad[a]});
  }
  return pass;
}

WindowPass backward_pass(const ConvolutionSizes &s) {
  WindowPass pass{s.batch,
                  s.groups,
                  s.out_channels,
                  s.in_channels,
                  s.out,
                  s.out_step,
                  s.out_batch_step,
                  s.out_channel_step,
                  s.in_batch_step,
                  s.in_channel_step,
                  s.out_channels * s.weight_out_step,
                  s.weight_out_step,
                  s.weight_in_step,
                  s.weight_step,
                  {}};
  for (int64_t i = 0; i < volume(s.stride); ++i) {
    const Axes start = place_in(s.stride, i);
    PlaceClass one;
    one.stride = {1, 1, 1};
    one.first = offset_of(start, s.in_step);
    for (size_t a = 0; a < 3; ++a) {
      one.places[a] = std::max<int64_t>(0, (s.in[a] - start[a] + s.stride[a] - 1) / s.stride[a]);
      one.step[a] = s.stride[a] * s.in_step[a];
      for (int64_t k = 0; k < s.kernel[a]; ++k) {
        const int64_t at = start[a] + s.pad[a] - k * s.dilate[a];
        if (at % s.stride[a] == 0) one.taps[a].push_back({k, at / s.stride[a]});
      }
    }
    if (volume(one.places) > 0) pass.classes.push_back(std::move(one));
  }
  return pass;
}

// Places [begin, end) of a class.
struct Chunk {
  int64_t begin, end;
  Axes first;  // place `begin`
  Chunk(const Axes &places, int64_t begin_place, int64_t end_place)
      : begin(begin_place), end(end_place), first(place_in(places, begin_place)) {}
};

// Calls fn(place within the chunk, place of the class, number of places) for the lines of a chunk.
template <typename Fn>
void for_lines(const Axes &places, const Chunk &chunk, Fn &&fn) {
  const int64_t begin = chunk.begin, end = chunk.end;
  Axes at = chunk.first;
  for (int64_t p = begin; p < end;) {
    const int64_t count = std::min(places[2] - at[2], end - p);
    fn(p - begin, at, count);
    p += count;
    at[2] = 0;
    if (++at[1] == places[1]) at[1] = 0, ++at[0];
  }
}

template <typename Fn>
void for_taps(const PlaceClass &of, Fn &&fn) {
  for (const WindowTap &i : of.taps[0]) {
    for (const WindowTap &j : of.taps[1]) {
      for (const WindowTap &k : of.taps[2]) fn(i, j, k);
    }
  }
}

// Writes the elements that the places of a chunk take of one channel: a row of columns for each tap.
template <typename T>
T *fill_columns(const WindowPass &pass, const PlaceClass &of, const T *channel, const Chunk &part, T *to) {
  for_taps(of, [&](const WindowTap &i, const WindowTap &j, const WindowTap &k) {
    for_lines(of.places, part, [&](int64_t p, const Axes &at, int64_t count) {
      const int64_t z = at[0] * of.stride[0] + i.offset, y = at[1] * of.stride[1] + j.offset;
      const int64_t stride = of.stride[2], x = at[2] * stride + k.offset;
      T *const line = to + p;
      if (z < 0 || z >= pass.lengths[0] || y < 0 || y >= pass.lengths[1]) return void(std::fill_n(line, count, T(0)));
      // inside() divides, which takes as long as the rest of a short line.
      const KernelRange range =
          stride == 1 ? KernelRange{-x, pass.lengths[2] - x} : inside(x, stride, count, pass.lengths[2]);
      const int64_t first = std::min(std::max<int64_t>(range.begin, 0), count);
      const int64_t last = std::max(first, std::min(range.end, count));
      if (first > 0) std::fill_n(line, first, T(0));
      const int64_t step = stride * pass.source_step[2];
      const T *const from = channel + offset_of({z, y, x}, pass.source_step);
      if (step == 1) {
        for (int64_t t = first; t < last; ++t) line[t] = from[t];
      } else {
        for (int64_t t = first; t < last; ++t) line[t] = from[t * step];
      }
      if (last < count) std::fill_n(line + last, count - last, T(0));
    });
    to += part.end - part.begin;
  });
  return to;
}

// Products with so few filters that a panel of the matrix product would be mostly empty (groups of one channel):
// result (out, count) += filters (out, depth) columns (depth, count).
constexpr int64_t kFewFilters = 3;
template <typename T>
struct FewFilters {
  static void run(const T *filters, const T *columns, int64_t out, int64_t depth, int64_t count, T *result) {
    for (int64_t o = 0; o < out; ++o) {
      T *const y = result + o * count;
      for (int64_t d = 0; d < depth; ++d) {
        const T factor = filters[o * depth + d], *const x = columns + d * count;
        COHORT_INDEPENDENT_ITERATIONS
        for (int64_t p = 0; p < count; ++p) y[p] += factor * x[p];
      }
    }
  }
};
// sums (rows, out) += columns (rows, count) heads (out, count)^T, each in eight partial sums.
template <typename T>
struct FewHeads {
  static void run(const T *columns, const T *heads, int64_t rows, int64_t out, int64_t count, T *sums) {
    constexpr int64_t kLanes = 8;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t o = 0; o < out; ++o) {
        const T *const x = columns + row * count, *const dy = heads + o * count;
        T lanes[kLanes] = {}, sum = 0;
        int64_t p = 0;
        for (; p + kLanes <= count; p += kLanes) {
          for (int64_t l = 0; l < kLanes; ++l) lanes[l] += x[p + l] * dy[p + l];
        }
        for (int64_t l = 0; l < kLanes; ++l) sum += lanes[l];
        for (; p < count; ++p) sum += x[p] * dy[p];
        sums[row * out + o] += sum;
      }
    }
  }
};

// Places of a chunk, so that its columns stay in a cache and all threads have some.
int64_t chunk_places(const WindowPass &pass, int64_t num_places, int64_t depth, int64_t element_bytes,
                     int num_threads) {
  const int64_t fitting = kColumnBytes / std::max<int64_t>(1, depth * element_bytes);
  const int64_t share = pass.batch * pass.groups * num_places / std::max(num_threads, 1);
  const int64_t wanted = std::min({fitting, share, num_places}) / kLeastPlaces * kLeastPlaces;
  return std::max(kLeastPlaces, wanted);
}

struct WindowScratch {
  size_t filters = 0, columns = 0, tile = 0;  // elements; the last two of each range
  int64_t ranges = 0;
  size_t size() const { return filters + size_t(ranges) * (columns + tile); }
};

int64_t units_of(const WindowPass &pass, int64_t num_places, int64_t chunk) {
  return pass.batch * pass.groups * ((num_places + chunk - 1) / chunk);
}

WindowScratch scratch_of(const WindowPass &pass, int64_t element_bytes, int num_threads) {
  WindowScratch most;
  for (const PlaceClass &of : pass.classes) {
    const int64_t depth = pass.in_channels * of.num_taps();
    const int64_t num_places = volume(of.places);
    const int64_t chunk = chunk_places(pass, num_places, depth, element_bytes, num_threads);
    const int64_t most_places = std::min(chunk, num_places);
    most.filters = std::max(most.filters, size_t(pass.groups * pass.out_channels * depth));
    most.columns = std::max(most.columns, size_t(depth * most_places));
    most.tile = std::max(most.tile, size_t(pass.out_channels * most_places));
    most.ranges = std::max(most.ranges, std::min<int64_t>(num_threads, units_of(pass, num_places, chunk)));
  }
  return most;
}

// Computes the places of one class, chunk by chunk: the filters, packed by groups into rows (out, in x taps), times the
// columns of the chunk. `bias`, where given, has an element for each channel of the result.
template <typename T>
void multiply_windows(const WindowPass &pass, const PlaceClass &of, const T *source, const T *weight, const T *bias,
                      T *result, T *scratch, const WindowScratch &sizes, const Lane &lane, int num_threads) {
  const int64_t depth = pass.in_channels * of.num_taps(), num_places = volume(of.places), out = pass.out_channels;
  T *const filters = scratch;
  parallel_for(lane, pass.groups * out, 1 + 65536 / (depth + 1), [&](int64_t begin, int64_t end) {
    T *to = filters + begin * depth;
    for (int64_t row = begin; row < end; ++row) {
      const T *const from = weight + row / out * pass.weight_group_step + row % out * pass.weight_out_step;
      for (int64_t c = 0; c < pass.in_channels; ++c) {
        for_taps(of, [&](const WindowTap &i, const WindowTap &j, const WindowTap &k) {
          *to++ = from[c * pass.weight_in_step + offset_of({i.kernel, j.kernel, k.kernel}, pass.weight_step)];
        });
      }
    }
  });
  const int64_t chunk = chunk_places(pass, num_places, depth, sizeof(T), num_threads);
  const int64_t num_chunks = (num_places + chunk - 1) / chunk;
  static const auto few_filters = best_version<FewFilters<T>>();
  parallel_ranges(lane, units_of(pass, num_places, chunk), 1, [&](int64_t range, int64_t first, int64_t last) {
    T *const columns = scratch + sizes.filters + size_t(range) * (sizes.columns + sizes.tile);
    T *const tile = columns + sizes.columns;
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t n = unit / num_chunks / pass.groups, g = unit / num_chunks % pass.groups;
      const int64_t begin = unit % num_chunks * chunk, end = std::min(begin + chunk, num_places), count = end - begin;
      const Chunk part(of.places, begin, end);
      T *to = columns;
      for (int64_t c = 0; c < pass.in_channels; ++c) {
        const T *const channel =
            source + n * pass.source_batch_step + (g * pass.in_channels + c) * pass.source_channel_step;
        to = fill_columns(pass, of, channel, part, to);
      }
      for (int64_t o = 0; o < out; ++o) std::fill_n(tile + o * count, count, bias ? bias[g * out + o] : T(0));
      if (out <= kFewFilters) {
        few_filters(filters + g * out * depth, columns, out, depth, count, tile);
      } else {
        gemm(Lane{1, nullptr}, false, false, out, count, depth, filters + g * out * depth, columns, T(1), tile);
      }
      for (int64_t o = 0; o < out; ++o) {
        T *const y = result + of.first + n * pass.result_batch_step + (g * out + o) * pass.result_channel_step;
        for_lines(of.places, part, [&](int64_t p, const Axes &at, int64_t line) {
          T *const at_line = y + offset_of(at, of.step);
          const T *const from = tile + o * count + p;
          for (int64_t t = 0; t < line; ++t) at_line[t * of.step[2]] = from[t];
        });
      }
    }
  });
}

template <typename T>
void run_pass(const WindowPass &pass, const void *source, const void *weight, const void *bias, void *result,
              void *scratch, int num_threads, Lane lane) {
  lane.num_threads = std::min(lane.num_threads, num_threads);
  const WindowScratch sizes = scratch_of(pass, sizeof(T), num_threads);
  for (const PlaceClass &of : pass.classes) {
    multiply_windows(pass, of, static_cast<const T *>(source), static_cast<const T *>(weight),
                     static_cast<const T *>(bias), static_cast<T *>(result), static_cast<T *>(scratch), sizes, lane,
                     num_threads);
  }
}

// How the gradient of the weight is divided: channels of the data at once, and blocks of so many in a group.
struct WeightBlocks {
  int64_t places, channels, blocks;
  WeightBlocks(const ConvolutionSizes &s, int64_t element_bytes) : places(std::min(kWeightPlaces, volume(s.out))) {
    const int64_t fitting = kColumnBytes / (kWeightPlaces * volume(s.kernel) * element_bytes);
    channels = std::max<int64_t>(1, std::min(fitting, s.in_channels));
    blocks = (s.in_channels + channels - 1) / channels;
  }
  int64_t scratch(const ConvolutionSizes &s) const {  // elements of a range
    const int64_t rows = channels * volume(s.kernel);
    return rows * places + s.out_channels * (places + rows);
  }
};

// Each range computes all sums of some channels of the data: columns of the data, (in x kernel, places), times the
// head gradient, (places, out), summed over chunks of places in order.
template <typename T>
void backward_weight(const ConvolutionSizes &s, const T *head, const T *data, T *grad, T *scratch, const Lane &lane) {
  const WindowPass pass = forward_pass(s);
  const PlaceClass &of = pass.classes[0];
  const int64_t kernel = volume(s.kernel), num_places = volume(s.out), out = s.out_channels;
  static const auto few_heads = best_version<FewHeads<T>>();
  const WeightBlocks way(s, sizeof(T));
  const int64_t most = way.channels, blocks = way.blocks, places = way.places;
  parallel_ranges(lane, s.groups * blocks, 1, [&](int64_t range, int64_t first, int64_t last) {
    T *const columns = scratch + range * way.scratch(s);
    T *const tile = columns + most * kernel * places, *const sums = tile + out * places;
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t g = unit / blocks, channel = unit % blocks * most;
      const int64_t channels = std::min(most, s.in_channels - channel), rows = channels * kernel;
      std::fill_n(sums, rows * out, T(0));
      for (int64_t n = 0; n < s.batch; ++n) {
        const T *const x = data + n * s.in_batch_step + (g * s.in_channels + channel) * s.in_channel_step;
        const T *const dy = head + n * s.out_batch_step + g * out * s.out_channel_step;
        for (int64_t begin = 0; begin < num_places; begin += places) {
          const int64_t end = std::min(begin + places, num_places), count = end - begin;
          const Chunk part(of.places, begin, end);
          T *to = columns;
          for (int64_t c = 0; c < channels; ++c) {
            to = fill_columns(pass, of, x + c * s.in_channel_step, part, to);
          }
          for (int64_t o = 0; o < out; ++o) {
            for_lines(of.places, part, [&](int64_t p, const Axes &at, int64_t line) {
              const T *const from = dy + o * s.out_channel_step + offset_of(at, of.step);
              for (int64_t t = 0; t < line; ++t) tile[o * count + p + t] = from[t * of.step[2]];
            });
          }
          if (out <= kFewFilters) {
            few_heads(columns, tile, rows, out, count, sums);
          } else {
            gemm(Lane{1, nullptr}, false, true, rows, out, count, columns, tile, T(1), sums);
          }
        }
      }
      for (int64_t row = 0; row < rows; ++row) {
        T *const dw = grad + g * out * s.weight_out_step + (channel + row / kernel) * s.weight_in_step +
                      offset_of(place_in(s.kernel, row % kernel), s.weight_step);
        for (int64_t o = 0; o < out; ++o) dw[o * s.weight_out_step] = sums[row * out + o];
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

PlainConvolution::PlainConvolution(const ConvolutionSizes &sizes, Dtype dtype, int num_threads)
    : sizes_(sizes), dtype_(dtype), num_threads_(num_threads) {
  if (dtype != Dtype::kFloat32 && dtype != Dtype::kFloat64) {
    throw Error(Code::kInternal, text("convolution by columns: expected float32 or float64, found ", dtype));
  }
}

size_t PlainConvolution::forward_scratch_bytes() const {
  const auto element_bytes = int64_t(dtype_size(dtype_));
  return scratch_of(forward_pass(sizes_), element_bytes, num_threads_).size() * size_t(element_bytes);
}

size_t PlainConvolution::data_scratch_bytes() const {
  const auto element_bytes = int64_t(dtype_size(dtype_));
  return scratch_of(backward_pass(sizes_), element_bytes, num_threads_).size() * size_t(element_bytes);
}

size_t PlainConvolution::weight_scratch_bytes() const {
  const auto element_bytes = int64_t(dtype_size(dtype_));
  const WeightBlocks way(sizes_, element_bytes);
  return size_t(std::min<int64_t>(num_threads_, sizes_.groups * way.blocks) * way.scratch(sizes_) * element_bytes);
}

void PlainConvolution::forward(const void *data, const void *weight, const void *bias, void *result, void *scratch,
                               const Lane &lane) const {
  const auto run = dtype_ == Dtype::kFloat64 ? run_pass<double> : run_pass<float>;
  run(forward_pass(sizes_), data, weight, bias, result, scratch, num_threads_, lane);
}

void PlainConvolution::backward_data(const void *head, const void *weight, const void *bias, void *data_grad,
                                     void *scratch, const Lane &lane) const {
  const auto run = dtype_ == Dtype::kFloat64 ? run_pass<double> : run_pass<float>;
  run(backward_pass(sizes_), head, weight, bias, data_grad, scratch, num_threads_, lane);
}

void PlainConvolution::backward_weight(const void *head, const void *data, void *weight_grad, void *scratch,
                                       const Lane &all) const {
  const Lane lane{std::min(all.num_threads, num_threads_), nullptr};
  const auto run = [&](auto type) {
    using T = decltype(type);
    cohort::backward_weight(sizes_, static_cast<const T *>(head), static_cast<const T *>(data),
                            static_cast<T *>(weight_grad), static_cast<T *>(scratch), lane);
  };
  if (dtype_ == Dtype::kFloat64) {
    run(double());
  } else {
    run(float());
  }
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
