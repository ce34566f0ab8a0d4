// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/filter_gradient.hpp"

#include <algorithm>
#include <type_traits>

#include "cuda/cuda_launch.hpp"

namespace cohort {
namespace {

// A block adds up the gradient of kChannels output channels by kChannels channels of the data, over tiles of kRows x
// kColumns places of the result, which it loads into shared memory. A thread has two channels of each, and the places
// of one of kGroups groups of rows; at the end the groups are added up in order.
constexpr int kChannels = 16, kRows = 8;
constexpr int kPairs = kChannels / 2, kGroups = kBlockThreads / (kPairs * kPairs), kGroupRows = kRows / kGroups;

// The next step that leaves a remainder of 4 by 32: vectors of neighbouring channels are in different banks.
constexpr int apart(int length) { return length + (36 - length % 32) % 32; }

// Filters of kSide x kSide with strides of kStride, and a padding of kSide / 2.
template <int kSide, int kStride>
struct Tiles {
  static constexpr int kPad = kSide / 2, kTaps = kSide * kSide, kColumns = 32 / kStride;
  static constexpr int kDataRows = (kRows - 1) * kStride + kSide, kDataColumns = kColumns * kStride;
  static constexpr int kHeadStep = apart(kRows * kColumns);
  // A row of the data begins with the padding of its first place. It has no place behind kDataColumns but with strides
  // of 1.
  static constexpr int kDataRow = kDataColumns + 4, kDataStep = apart(kDataRows * kDataRow);
  static constexpr bool kHasPlaceBehind = kStride == 1 && kPad > 0;
  static constexpr int kSums = kChannels * kChannels * kTaps;
  // Sums of the groups take the place of the tiles.
  static constexpr int kShared = std::max(kChannels * (kHeadStep + kDataStep), kGroups *kSums);
};

struct GradientImages {
  int batch, in_channels, out_channels, in_height, in_width, height, width;
  int high, wide;  // tiles of a result
  bool aligned;    // arrays, so that whole vectors can be loaded
};

// A tile: its sample, and where it begins.
struct Spot {
  int sample, top, left;
};

template <typename T>
__device__ Spot spot_of(const GradientImages &s, int number) {
  const int sample = number / (s.high * s.wide), tile = number % (s.high * s.wide);
  return {sample, tile / s.wide * kRows, tile % s.wide * T::kColumns};
}

template <typename T>
__device__ void next(const GradientImages &s, Spot *spot) {
  spot->left += T::kColumns;
  if (spot->left < s.width) return;
  spot->left = 0, spot->top += kRows;
  if (spot->top < s.height) return;
  spot->top = 0, ++spot->sample;
}

__device__ inline int shorter(int a, int b) { return a < b ? a : b; }

__device__ inline Vector<float> load_four(const GradientImages &s, const float *from) {
  if (s.aligned) return load_vector(from);
  return {{from[0], from[1], from[2], from[3]}};
}

// Elements outside of images and channels are 0.
template <typename T>
__device__ void load_head(const GradientImages &s, const Spot &spot, int channel, const float *from, float *tile) {
  constexpr int kVectors = T::kColumns / 4;
  for (int i = int(threadIdx.x); i < kChannels * kRows * kVectors; i += kBlockThreads) {
    const int c = i / (kRows * kVectors), row = i / kVectors % kRows, column = i % kVectors * 4;
    const int y = spot.top + row, x = spot.left + column;
    Vector<float> loaded{};
    if (channel + c < s.out_channels && y < s.height && x < s.width) {
      const int64_t at = int64_t(spot.sample) * s.out_channels + channel + c;
      loaded = load_four(s, from + (at * s.height + y) * s.width + x);
    }
    store_vector(tile + c * T::kHeadStep + row * T::kColumns + column, loaded);
  }
}

template <int kStride, typename T>
__device__ void load_data(const GradientImages &s, const Spot &spot, int channel, const float *from, float *tile) {
  constexpr int kVectors = T::kDataColumns / 4 + (T::kPad > 0 ? 1 : 0);  // the last: the places before and behind
  for (int i = int(threadIdx.x); i < kChannels * T::kDataRows * kVectors; i += kBlockThreads) {
    const int c = i / (T::kDataRows * kVectors), row = i / kVectors % T::kDataRows, column = i % kVectors * 4;
    const int y = spot.top * kStride + row - T::kPad, left = spot.left * kStride, x = left + column;
    const bool there = channel + c < s.in_channels && y >= 0 && y < s.in_height;
    const int64_t at = int64_t(spot.sample) * s.in_channels + channel + c;
    const float *const line = from + (at * s.in_height + y) * s.in_width;
    float *const to = tile + c * T::kDataStep + row * T::kDataRow;
    if (column < T::kDataColumns) {
      Vector<float> loaded{};
      if (there && x < s.in_width) loaded = load_four(s, line + x);
      for (int v = 0; v < 4; ++v) to[T::kPad + column + v] = loaded.at[v];
    } else {
      to[0] = there && left > 0 ? line[left - 1] : 0.0f;
      if (T::kHasPlaceBehind) to[1 + T::kDataColumns] = there && x < s.in_width ? line[x] : 0.0f;
    }
  }
}

// Part i of the work: tiles [i * num_spots / parts, (i + 1) * num_spots / parts).
template <int kSide, int kStride>
__global__ void add_filter_gradients(GradientImages s, const float *head, const float *data, float *sums,
                                     int num_spots) {
  using T = Tiles<kSide, kStride>;
  constexpr int kTaps = T::kTaps, kPlaces = 3 * kStride + kSide;  // of a row of the data, for four of the result
  COHORT_SHARED(Vector<float>, memory, [T::kShared / 4]);
  float *const heads = &memory[0].at[0], *const datas = heads + kChannels * T::kHeadStep;
  const int t = int(threadIdx.x), group = t / (kPairs * kPairs), k = t / kPairs % kPairs, c = t % kPairs;
  const int tiles = (s.in_channels + kChannels - 1) / kChannels;
  const int out_channel = int(blockIdx.x) / tiles * kChannels, in_channel = int(blockIdx.x) % tiles * kChannels;
  const int part = int(blockIdx.y), parts = int(gridDim.y);
  const int begin = int(int64_t(num_spots) * part / parts), end = int(int64_t(num_spots) * (part + 1) / parts);

  float acc[2][2][kTaps] = {};
  Spot spot = spot_of<T>(s, begin);
  for (int number = begin; number < end; ++number, next<T>(s, &spot)) {
    load_head<T>(s, spot, out_channel, head, heads);
    load_data<kStride, T>(s, spot, in_channel, data, datas);
    __syncthreads();
    const int rows = shorter(s.height - spot.top, kRows), columns = shorter(s.width - spot.left, T::kColumns);
    for (int row = group * kGroupRows; row < shorter((group + 1) * kGroupRows, rows); ++row) {
      for (int column = 0; column < columns; column += 4) {
        Vector<float> dy[2];
        for (int a = 0; a < 2; ++a) {
          dy[a] = load_vector(heads + (k + a * kPairs) * T::kHeadStep + row * T::kColumns + column);
        }
        for (int y = 0; y < kSide; ++y) {
          for (int b = 0; b < 2; ++b) {
            const float *const from =
                datas + (c + b * kPairs) * T::kDataStep + (row * kStride + y) * T::kDataRow + column * kStride;
            float x[(kPlaces + 3) / 4 * 4];
            for (int v = 0; v < kPlaces; v += 4) {
              const Vector<float> four = load_vector(from + v);
              for (int i = 0; i < 4; ++i) x[v + i] = four.at[i];
            }
            for (int a = 0; a < 2; ++a) {
              for (int z = 0; z < kSide; ++z) {
                float &sum = acc[a][b][y * kSide + z];
                for (int v = 0; v < 4; ++v) sum = fmaf(dy[a].at[v], x[v * kStride + z], sum);
              }
            }
          }
        }
      }
    }
    __syncthreads();
  }

  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 2; ++b) {
      const int at = ((k + a * kPairs) * kChannels + c + b * kPairs) * kTaps;
      for (int tap = 0; tap < kTaps; ++tap) heads[group * T::kSums + at + tap] = acc[a][b][tap];
    }
  }
  __syncthreads();
  float *const to = sums + int64_t(part) * s.out_channels * s.in_channels * kTaps;
  for (int i = t; i < T::kSums; i += kBlockThreads) {
    const int out = out_channel + i / (kChannels * kTaps), in = in_channel + i / kTaps % kChannels;
    if (out >= s.out_channels || in >= s.in_channels) continue;
    float sum = heads[i];
    for (int g = 1; g < kGroups; ++g) sum += heads[g * T::kSums + i];
    to[(int64_t(out) * s.in_channels + in) * kTaps + i % kTaps] = sum;
  }
}

// Adds up the parts of `count` elements: the rows of a block take turns with the parts, and are added up in order.
constexpr int kAcross = 32, kDown = kBlockThreads / kAcross;

__global__ void add_parts(const float *sums, int parts, int64_t count, float *grad) {
  COHORT_SHARED(float, found, [kDown][kAcross]);
  const int64_t i = int64_t(blockIdx.x) * kAcross + threadIdx.x;
  float sum = 0;
  if (i < count) {
    for (int part = int(threadIdx.y); part < parts; part += kDown) sum += sums[part * count + i];
  }
  found[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || i >= count) return;
  for (int row = 1; row < kDown; ++row) sum += found[row][threadIdx.x];
  grad[i] = sum;
}

int tiles_along(int64_t length, int tile) { return int((length + tile - 1) / tile); }

// fn(side of the filters, stride), both as types.
template <typename Fn>
void with_filters(const ConvolutionSizes &s, const Fn &fn) {
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  using Three = std::integral_constant<int, 3>;
  if (s.kernel[1] == 1) return fn(One(), Two());
  s.stride[1] == 1 ? fn(Three(), One()) : fn(Three(), Two());
}

}  // namespace

bool FilterGradient::applies(const ConvolutionSizes &s) {
  const int64_t side = s.kernel[2], stride = s.stride[2];
  const auto square = [](const ConvolutionSizes::Axes &axes, int64_t first, int64_t length) {
    return axes == ConvolutionSizes::Axes{first, length, length};
  };
  return ((side == 3 && stride <= 2) || (side == 1 && stride == 2)) && square(s.kernel, 1, side) &&
         square(s.stride, s.stride[0], stride) && square(s.dilate, s.dilate[0], 1) && square(s.pad, 0, side / 2) &&
         s.in[0] == 1 && s.out[0] == 1 && s.out[2] * stride == s.in[2] && s.out[2] % 4 == 0 && s.groups == 1 &&
         s.in_step[2] == 1 && s.out_step[2] == 1 && s.weight_step[2] == 1;
}

FilterGradient::FilterGradient(const ConvolutionSizes &s) : sizes_(s) {
  with_filters(s, [&](auto side, auto stride) {
    constexpr int kColumns = Tiles<decltype(side)::value, decltype(stride)::value>::kColumns;
    num_spots_ = int(s.batch) * tiles_along(s.out[1], kRows) * tiles_along(s.out[2], kColumns);
  });
  // As many blocks as an H100 or H200 holds at once, 3 per multiprocessor, with the same work as far as possible.
  const int most_parts = std::clamp(132 * 3 / num_tiles(), 1, num_spots_);
  num_parts_ = tiles_along(num_spots_, tiles_along(num_spots_, most_parts));
}

int FilterGradient::num_tiles() const {
  return tiles_along(sizes_.in_channels, kChannels) * tiles_along(sizes_.out_channels, kChannels);
}

int64_t FilterGradient::num_elements() const {
  return sizes_.out_channels * sizes_.in_channels * convolution::volume(sizes_.kernel);
}

void FilterGradient::run(const Lane &lane, const float *head, const float *data, float *grad, void *scratch) const {
  const ConvolutionSizes &s = sizes_;
  float *const sums = num_parts_ > 1 ? static_cast<float *>(scratch) : grad;
  with_filters(s, [&](auto side, auto stride) {
    constexpr int kSide = decltype(side)::value, kStride = decltype(stride)::value;
    const GradientImages images{int(s.batch),
                                int(s.in_channels),
                                int(s.out_channels),
                                int(s.in[1]),
                                int(s.in[2]),
                                int(s.out[1]),
                                int(s.out[2]),
                                tiles_along(s.out[1], kRows),
                                tiles_along(s.out[2], Tiles<kSide, kStride>::kColumns),
                                can_be_vectors({head, data})};
    launch(add_filter_gradients<kSide, kStride>,
           {dim3(unsigned(num_tiles()), unsigned(num_parts_)), dim3(kBlockThreads)}, lane.stream, images, head, data,
           sums, num_spots_);
  });
  if (num_parts_ == 1) return;
  launch(add_parts, {dim3(unsigned(tiles_along(num_elements(), kAcross))), dim3(kAcross, kDown)}, lane.stream, sums,
         num_parts_, num_elements(), grad);
}

}  // namespace cohort
