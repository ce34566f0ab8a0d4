// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/winograd.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"

#ifdef COHORT_SIMD_VERSIONS
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2,prefer-vector-width=512")
#endif

namespace cohort {
namespace {

constexpr int64_t kLanes = 16, kTile = 4, kWindow = 5, kSide = kTile + kWindow - 1, kPoints = kSide * kSide;
constexpr int64_t kGroupBytes = 384 << 10;  // of a transformed group of tiles: half of a typical L2 cache
constexpr int64_t kRows = 6;                // rows of a product in registers, beside up to kColumns vectors of columns
constexpr int64_t kColumns = 4;

using Lanes [[gnu::vector_size(64), gnu::may_alias]] = float;
using LanesAnywhere [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;

int64_t vectors(int64_t channels) { return (channels + kLanes - 1) / kLanes; }

// ---- polynomials at the points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity ---------------------------------------------
// Four places of the result are D = A^T [(G w) * (B^T d)], along both axes; each class here is one of these matrices
// or its transpose, applied to kIn values.

constexpr float kOne = -2.0f / 9, kTwo = 1.0f / 90, kHalf = 32.0f / 45;  // rows of G at +-1, +-2 and +-1/2

struct DataToPoints {  // B^T
  static constexpr int64_t kIn = kSide, kOut = kSide;
  template <typename Out>
  static void apply(const Lanes *d, const Out &p) {
    p(0) = (d[0] - d[6]) + (d[4] - d[2]) * 5.25f;
    p(7) = (d[7] - d[1]) + (d[3] - d[5]) * 5.25f;
    both(p(1), p(2), d[2] - d[4] * 4.25f + d[6], d[1] - d[3] * 4.25f + d[5]);
    both(p(3), p(4), d[2] * 0.25f - d[4] * 1.25f + d[6], d[1] * 0.5f - d[3] * 2.5f + d[5] * 2.0f);
    both(p(5), p(6), d[2] * 4.0f - d[4] * 5.0f + d[6], d[1] * 2.0f - d[3] * 2.5f + d[5] * 0.5f);
  }
  static void both(Lanes &plus, Lanes &minus, const Lanes &even, const Lanes &odd) {
    plus = even + odd;
    minus = even - odd;
  }
};

struct PointsToData {  // B
  static constexpr int64_t kIn = kSide, kOut = kSide;
  template <typename Out>
  static void apply(const Lanes *p, const Out &d) {
    const Lanes one = p[1] + p[2], two = p[3] + p[4], half = p[5] + p[6];
    const Lanes odd_one = p[1] - p[2], odd_two = p[3] - p[4], odd_half = p[5] - p[6];
    d(0) = p[0];
    d(1) = odd_one + odd_two * 0.5f + odd_half * 2.0f - p[7];
    d(2) = one + two * 0.25f + half * 4.0f - p[0] * 5.25f;
    d(3) = p[7] * 5.25f - odd_one * 4.25f - (odd_two + odd_half) * 2.5f;
    d(4) = p[0] * 5.25f - one * 4.25f - two * 1.25f - half * 5.0f;
    d(5) = odd_one + odd_two * 2.0f + odd_half * 0.5f - p[7] * 5.25f;
    d(6) = one + two + half - p[0];
    d(7) = p[7];
  }
};

struct PointsToResult {  // A^T
  static constexpr int64_t kIn = kSide, kOut = kTile;
  template <typename Out>
  static void apply(const Lanes *p, const Out &y) {
    const Lanes one = p[1] + p[2], two = p[3] + p[4], half = p[5] + p[6];
    const Lanes odd_one = p[1] - p[2], odd_two = p[3] - p[4], odd_half = p[5] - p[6];
    y(0) = p[0] + one + two + half;
    y(1) = odd_one + odd_two * 2.0f + odd_half * 0.5f;
    y(2) = one + two * 4.0f + half * 0.25f;
    y(3) = odd_one + odd_two * 8.0f + odd_half * 0.125f + p[7];
  }
};

struct ResultToPoints {  // A
  static constexpr int64_t kIn = kTile, kOut = kSide;
  template <typename Out>
  static void apply(const Lanes *y, const Out &p) {
    p(0) = y[0];
    p(7) = y[3];
    DataToPoints::both(p(1), p(2), y[0] + y[2], y[1] + y[3]);
    DataToPoints::both(p(3), p(4), y[0] + y[2] * 4.0f, y[1] * 2.0f + y[3] * 8.0f);
    DataToPoints::both(p(5), p(6), y[0] + y[2] * 0.25f, y[1] * 0.5f + y[3] * 0.125f);
  }
};

struct WindowToPoints {  // G
  static constexpr int64_t kIn = kWindow, kOut = kSide;
  template <typename Out>
  static void apply(const Lanes *w, const Out &p) {
    p(0) = w[0] + 0.0f;
    p(7) = w[4] + 0.0f;
    DataToPoints::both(p(1), p(2), (w[0] + w[2] + w[4]) * kOne, (w[1] + w[3]) * kOne);
    DataToPoints::both(p(3), p(4), (w[0] + w[2] * 4.0f + w[4] * 16.0f) * kTwo, (w[1] * 2.0f + w[3] * 8.0f) * kTwo);
    DataToPoints::both(p(5), p(6), (w[0] + w[2] * 0.25f + w[4] * 0.0625f) * kHalf,
                       (w[1] * 0.5f + w[3] * 0.125f) * kHalf);
  }
};

struct PointsToWindow {  // G^T
  static constexpr int64_t kIn = kSide, kOut = kWindow;
  template <typename Out>
  static void apply(const Lanes *p, const Out &w) {
    const Lanes one = (p[1] + p[2]) * kOne, two = (p[3] + p[4]) * kTwo, half = (p[5] + p[6]) * kHalf;
    const Lanes odd_one = (p[1] - p[2]) * kOne, odd_two = (p[3] - p[4]) * kTwo, odd_half = (p[5] - p[6]) * kHalf;
    w(0) = p[0] + one + two + half;
    w(1) = odd_one + odd_two * 2.0f + odd_half * 0.5f;
    w(2) = one + two * 4.0f + half * 0.25f;
    w(3) = odd_one + odd_two * 8.0f + odd_half * 0.125f;
    w(4) = one + two * 16.0f + half * 0.0625f + p[7];
  }
};

// Applies a transform along both axes: in(i, j) gives a vector, out(i, j) is one.
template <typename Matrix, typename In, typename Out>
void along_both(const In &in, const Out &out) {
  Lanes half[Matrix::kOut][Matrix::kIn];
  for (int64_t j = 0; j < Matrix::kIn; ++j) {
    Lanes column[Matrix::kIn];
    for (int64_t i = 0; i < Matrix::kIn; ++i) column[i] = in(i, j);
    Matrix::apply(column, [&](int64_t i) -> Lanes & { return half[i][j]; });
  }
  for (int64_t i = 0; i < Matrix::kOut; ++i) {
    Matrix::apply(half[i], [&](int64_t j) -> Lanes & { return out(i, j); });
  }
}

// ---- products ------------------------------------------------------------------------------------------------------

// A times B for R rows and N vectors of columns, stored in C or added to it. Element (r, k) of A is at a[r * row + k
// * inner].
struct PointProduct {
  const float *a;
  int64_t row, inner;
  const float *b;
  int64_t b_step;
  float *c;
  int64_t c_step, count;
  bool adds;
};

template <int R, int N>
void multiply_block(const PointProduct &p, int64_t first_row, int64_t first_vector) {
  const float *a = p.a + first_row * p.row, *b = p.b + first_vector * kLanes;
  float *const c = p.c + first_row * p.c_step + first_vector * kLanes;
  Lanes sums[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      sums[r][n] = Lanes{};
    }
  }
  for (int64_t k = 0; k < p.count; ++k, a += p.inner, b += p.b_step) {
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums[r][n] += *reinterpret_cast<const Lanes *>(b + n * kLanes) * a[r * p.row];
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      Lanes &to = *reinterpret_cast<Lanes *>(c + r * p.c_step + n * kLanes);
      to = p.adds ? to + sums[r][n] : sums[r][n];
    }
  }
}

template <int N>
void multiply_columns(const PointProduct &p, int64_t rows, int64_t vector) {
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) multiply_block<kRows, N>(p, r, vector);
  for (; r + 2 <= rows; r += 2) multiply_block<2, N>(p, r, vector);
  if (r < rows) multiply_block<1, N>(p, r, vector);
}

void multiply(const PointProduct &p, int64_t rows, int64_t num_vectors) {
  int64_t n = 0;
  for (; n + kColumns <= num_vectors; n += kColumns) multiply_columns<kColumns>(p, rows, n);
  if (num_vectors - n == 3) multiply_columns<3>(p, rows, n);
  if (num_vectors - n == 2) multiply_columns<2>(p, rows, n);
  if (num_vectors - n == 1) multiply_columns<1>(p, rows, n);
}

// ---- arrays --------------------------------------------------------------------------------------------------------

using Sizes = Winograd::Sizes;

// The position of a tile: its sample, and its upper left corner.
struct Tile {
  int64_t sample, y, x;
};
Tile tile_at(const Sizes &z, int64_t t) {
  const int64_t in_sample = t % (z.tiles_y * z.tiles_x);
  return {t / (z.tiles_y * z.tiles_x), in_sample / z.tiles_x * kTile, in_sample % z.tiles_x * kTile};
}

// An array whose channels lie in runs at each place.
struct ChannelArray {
  const ChannelRuns &runs;
  int64_t height, width, channels;
  bool has(int64_t y, int64_t x) const { return y >= 0 && x >= 0 && y < height && x < width; }
  int64_t at(int64_t sample, int64_t y, int64_t x, int64_t channel) const {
    return sample * runs.batch_step + y * runs.step[1] + x * runs.step[2] + runs.channel(channel);
  }
  int64_t lanes(int64_t channel) const { return std::min(kLanes, channels - channel); }
};
ChannelArray data_places(const Sizes &z) { return {z.data, z.s.in[1], z.s.in[2], z.s.in_channels}; }
ChannelArray result_places(const Sizes &z) { return {z.result, z.s.out[1], z.s.out[2], z.s.out_channels}; }

// Vectors may read channels behind the last one, whose values are not used; only behind the array nothing may be
// read.
Lanes load(const float *from, const float *end) {
  if (end - from >= kLanes) return *reinterpret_cast<const LanesAnywhere *>(from);
  Lanes lanes{};
  for (int64_t l = 0; l < end - from; ++l) lanes[l] = from[l];
  return lanes;
}
void store(const Lanes &lanes, int64_t count, float *to) {
  if (count == kLanes) {
    *reinterpret_cast<LanesAnywhere *>(to) = lanes;
  } else {
    for (int64_t l = 0; l < count; ++l) to[l] = lanes[l];
  }
}
void add(const Lanes &lanes, int64_t count, float *to) {
  if (count == kLanes) {
    *reinterpret_cast<LanesAnywhere *>(to) += lanes;
  } else {
    for (int64_t l = 0; l < count; ++l) to[l] += lanes[l];
  }
}

// Transforms squares of an array to points: to[point][tile][channel], for tiles [first, first + count).
template <typename Matrix>
void to_points(const Sizes &z, const ChannelArray &places, const float *values, int64_t pad_y, int64_t pad_x,
               int64_t first, int64_t count, float *to) {
  const int64_t width = vectors(places.channels) * kLanes;
  const float *const end = values + z.s.batch * places.runs.batch_step;
  for (int64_t t = 0; t < count; ++t) {
    const Tile tile = tile_at(z, first + t);
    const int64_t y = tile.y - pad_y, x = tile.x - pad_x;
    for (int64_t c = 0; c < places.channels; c += kLanes) {
      const float *const from = values + places.at(tile.sample, y, x, c);
      float *const out = to + t * width + c;
      along_both<Matrix>(
          [&](int64_t i, int64_t j) {
            if (!places.has(y + i, x + j)) return Lanes{};
            return load(from + i * places.runs.step[1] + j * places.runs.step[2], end);
          },
          [&](int64_t i, int64_t j) -> Lanes & {
            return *reinterpret_cast<Lanes *>(out + (i * kSide + j) * z.group * width);
          });
    }
  }
}

// Transforms filters to points: to[point][row][lane], where a row is a channel of the data and a lane one of the
// result; for transposed filters the other way round.
struct FiltersToPoints {
  static void run(const Sizes &z, const float *weight, bool transposed, int64_t begin, int64_t end, float *to) {
    int64_t rows = z.s.in_channels, columns = z.s.out_channels, row = z.s.weight_in_step, lane = z.s.weight_out_step;
    if (transposed) std::swap(rows, columns), std::swap(row, lane);
    const int64_t width = vectors(columns) * kLanes;
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < columns; c += kLanes) {
        const float *const from = weight + r * row + c * lane;
        Lanes window[kWindow][kWindow] = {};
        for (int64_t l = 0; l < std::min(kLanes, columns - c); ++l) {
          for (int64_t k = 0; k < kWindow * kWindow; ++k) {
            reinterpret_cast<float *>(window)[k * kLanes + l] =
                from[l * lane + k / kWindow * z.s.weight_step[1] + k % kWindow * z.s.weight_step[2]];
          }
        }
        along_both<WindowToPoints>([&](int64_t i, int64_t j) { return window[i][j]; },
                                   [&](int64_t i, int64_t j) -> Lanes & {
                                     return *reinterpret_cast<Lanes *>(to + ((i * kSide + j) * rows + r) * width + c);
                                   });
      }
    }
  }
};

// Computes channels [begin, end) of the data in the gradient of the filters: the sum of `num_sums` arrays of points,
// in order.
struct PointsToFilters {
  static void run(const Sizes &z, const float *sums, int64_t sum_step, int64_t num_sums, int64_t begin, int64_t end,
                  float *gradient) {
    const int64_t rows = z.s.in_channels, columns = z.s.out_channels, width = vectors(columns) * kLanes;
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < columns; c += kLanes) {
        Lanes window[kWindow][kWindow];
        along_both<PointsToWindow>(
            [&](int64_t i, int64_t j) {
              const float *const from = sums + ((i * kSide + j) * rows + r) * width + c;
              Lanes sum = *reinterpret_cast<const Lanes *>(from);
              for (int64_t s = 1; s < num_sums; ++s) sum += *reinterpret_cast<const Lanes *>(from + s * sum_step);
              return sum;
            },
            [&](int64_t i, int64_t j) -> Lanes & { return window[i][j]; });
        float *const to = gradient + r * z.s.weight_in_step + c * z.s.weight_out_step;
        for (int64_t l = 0; l < std::min(kLanes, columns - c); ++l) {
          for (int64_t k = 0; k < kWindow * kWindow; ++k) {
            to[l * z.s.weight_out_step + k / kWindow * z.s.weight_step[1] + k % kWindow * z.s.weight_step[2]] =
                reinterpret_cast<const float *>(window)[k * kLanes + l];
          }
        }
      }
    }
  }
};

// Computes tiles [begin, end) of the result.
struct ForwardTiles {
  static void run(const Sizes &z, const float *data, const float *filters, const float *bias, int64_t begin,
                  int64_t end, float *memory, float *result) {
    const ChannelArray places = result_places(z);
    const int64_t in = z.in_width(), out = z.out_width();
    float *const data_points = memory, *const points = memory + kPoints * z.group * in;
    for (int64_t first = begin; first < end; first += z.group) {
      const int64_t count = std::min(z.group, end - first);
      to_points<DataToPoints>(z, data_places(z), data, z.s.pad[1], z.s.pad[2], first, count, data_points);
      for (int64_t p = 0; p < kPoints; ++p) {
        multiply({data_points + p * z.group * in, in, 1, filters + p * z.s.in_channels * out, out,
                  points + p * z.group * out, out, z.s.in_channels, false},
                 count, out / kLanes);
      }
      for (int64_t t = 0; t < count; ++t) {
        const Tile tile = tile_at(z, first + t);
        for (int64_t c = 0; c < places.channels; c += kLanes) {
          const int64_t lanes = places.lanes(c);
          const float *const from = points + t * out + c;
          Lanes square[kTile][kTile];
          along_both<PointsToResult>(
              [&](int64_t i, int64_t j) {
                return *reinterpret_cast<const Lanes *>(from + (i * kSide + j) * z.group * out);
              },
              [&](int64_t i, int64_t j) -> Lanes & { return square[i][j]; });
          const Lanes shift = bias ? load(bias + c, bias + places.channels) : Lanes{};
          for (int64_t i = 0; i < std::min(kTile, places.height - tile.y); ++i) {
            for (int64_t j = 0; j < std::min(kTile, places.width - tile.x); ++j) {
              store(square[i][j] + shift, lanes, result + places.at(tile.sample, tile.y + i, tile.x + j, c));
            }
          }
        }
      }
    }
  }
};

// The outputs of a range of samples; each may be null. Those of filters (as points) and of the bias are partial sums.
struct GradientBuffers {
  float *data, *filters, *bias;
};

struct BackwardSamples {
  static void run(const Sizes &z, const float *head, const float *data, const float *filters, int64_t begin,
                  int64_t end, float *memory, const GradientBuffers &to) {
    const int64_t in = z.in_width(), out = z.out_width(), tiles = z.tiles_y * z.tiles_x;
    float *const data_points = memory, *const points = memory + kPoints * z.group * in;
    if (to.data) {
      std::memset(to.data + begin * z.data.batch_step, 0, size_t((end - begin) * z.data.batch_step) * sizeof(float));
    }
    for (int64_t first = begin * tiles; first < end * tiles; first += z.group) {
      const int64_t count = std::min(z.group, end * tiles - first);
      const bool adds = first != begin * tiles;
      to_points<ResultToPoints>(z, result_places(z), head, 0, 0, first, count, points);
      if (to.bias) add_tiles(z, points, count, adds, to.bias);
      if (to.filters) {
        to_points<DataToPoints>(z, data_places(z), data, z.s.pad[1], z.s.pad[2], first, count, data_points);
        for (int64_t p = 0; p < kPoints; ++p) {
          multiply({data_points + p * z.group * in, 1, in, points + p * z.group * out, out,
                    to.filters + p * z.s.in_channels * out, out, count, adds},
                   z.s.in_channels, out / kLanes);
        }
      }
      if (!to.data) continue;
      for (int64_t p = 0; p < kPoints; ++p) {
        multiply({points + p * z.group * out, out, 1, filters + p * z.s.out_channels * in, in,
                  data_points + p * z.group * in, in, z.s.out_channels, false},
                 count, in / kLanes);
      }
      for (int64_t t = 0; t < count; ++t) add_square(z, data_points + t * in, tile_at(z, first + t), to.data);
    }
  }

  // The sum over the places of a tile is one of its points: the one for 1 along both axes.
  static void add_tiles(const Sizes &z, const float *points, int64_t count, bool adds, float *bias) {
    const int64_t width = z.out_width();
    for (int64_t c = 0; c < width; c += kLanes) {
      const float *const from = points + (kSide + 1) * z.group * width + c;
      Lanes sum{};
      for (int64_t t = 0; t < count; ++t) sum += *reinterpret_cast<const Lanes *>(from + t * width);
      Lanes &to = *reinterpret_cast<Lanes *>(bias + c);
      to = adds ? to + sum : sum;
    }
  }

  static void add_square(const Sizes &z, const float *points, const Tile &tile, float *data_gradient) {
    const ChannelArray places = data_places(z);
    const int64_t y = tile.y - z.s.pad[1], x = tile.x - z.s.pad[2];
    for (int64_t c = 0; c < places.channels; c += kLanes) {
      const int64_t lanes = places.lanes(c);
      Lanes square[kSide][kSide];
      along_both<PointsToData>(
          [&](int64_t i, int64_t j) {
            return *reinterpret_cast<const Lanes *>(points + (i * kSide + j) * z.group * z.in_width() + c);
          },
          [&](int64_t i, int64_t j) -> Lanes & { return square[i][j]; });
      for (int64_t i = 0; i < kSide; ++i) {
        for (int64_t j = 0; j < kSide; ++j) {
          if (places.has(y + i, x + j)) {
            add(square[i][j], lanes, data_gradient + places.at(tile.sample, y + i, x + j, c));
          }
        }
      }
    }
  }
};

}  // namespace
#ifdef COHORT_SIMD_VERSIONS
#pragma GCC pop_options
#endif

int64_t Winograd::Sizes::in_width() const { return vectors(s.in_channels) * kLanes; }
int64_t Winograd::Sizes::out_width() const { return vectors(s.out_channels) * kLanes; }

std::unique_ptr<Winograd> Winograd::make(const ConvolutionSizes &s, const std::optional<ChannelRuns> &data,
                                         const std::optional<ChannelRuns> &result) {
  if (simd_level() != Simd::kAvx512 || s.groups != 1 || s.in[0] != 1 || s.kernel[0] != 1) return nullptr;
  for (size_t axis : {1, 2}) {
    if (s.kernel[axis] != kWindow || s.stride[axis] != 1 || s.dilate[axis] != 1) return nullptr;
  }
  const auto fits = [](const ChannelRuns &runs, int64_t channels) {
    return runs.run == channels || runs.run % kLanes == 0;
  };
  if (!data || !result || !fits(*data, s.in_channels) || !fits(*result, s.out_channels)) return nullptr;
  Sizes z{s, *data, *result, (s.out[1] + kTile - 1) / kTile, (s.out[2] + kTile - 1) / kTile, 0};
  const int64_t bytes = kPoints * (z.in_width() + z.out_width()) * int64_t(sizeof(float));
  z.group = std::clamp<int64_t>(kGroupBytes / bytes / kRows, 1, 8) * kRows;
  return std::unique_ptr<Winograd>(new Winograd(z));
}

size_t Winograd::filter_bytes() const {
  const int64_t one = sizes_.s.in_channels * sizes_.out_width(), other = sizes_.s.out_channels * sizes_.in_width();
  return size_t(kPoints * std::max(one, other)) * sizeof(float);
}
size_t Winograd::group_bytes() const {
  return size_t(kPoints * sizes_.group * (sizes_.in_width() + sizes_.out_width())) * sizeof(float);
}
size_t Winograd::sum_bytes() const { return filter_bytes() + size_t(sizes_.out_width()) * sizeof(float); }
size_t Winograd::scratch_bytes(int num_threads, bool for_sums) const {
  return filter_bytes() + size_t(num_threads) * (group_bytes() + (for_sums ? sum_bytes() : 0));
}

void Winograd::forward(const float *data, const float *weight, const float *bias, float *result, void *scratch,
                       const Lane &lane) const {
  float *const filters = static_cast<float *>(scratch);
  float *const memory = filters + filter_bytes() / sizeof(float);
  parallel_for(lane, sizes_.s.in_channels, 4, [&](int64_t begin, int64_t end) {
    FiltersToPoints::run(sizes_, weight, /* transposed */ false, begin, end, filters);
  });
  const int64_t num_tiles = sizes_.s.batch * sizes_.tiles_y * sizes_.tiles_x;
  parallel_ranges(lane, num_tiles, 1, [&](int64_t range, int64_t begin, int64_t end) {
    ForwardTiles::run(sizes_, data, filters, bias, begin, end, memory + range * int64_t(group_bytes() / sizeof(float)),
                      result);
  });
}

void Winograd::backward(const float *head, const float *data, const float *weight, float *data_gradient,
                        float *weight_gradient, float *bias_gradient, void *scratch, const Lane &lane) const {
  const int64_t group_size = int64_t(group_bytes() / sizeof(float)), sum_size = int64_t(sum_bytes() / sizeof(float));
  const int64_t bias_at = int64_t(filter_bytes() / sizeof(float)), out = sizes_.s.out_channels;
  const int64_t num_ranges = std::min<int64_t>(lane.num_threads, sizes_.s.batch);
  float *const filters = static_cast<float *>(scratch), *const memory = filters + bias_at;
  float *const sums = memory + num_ranges * group_size;
  if (data_gradient) {
    parallel_for(lane, out, 4, [&](int64_t begin, int64_t end) {
      FiltersToPoints::run(sizes_, weight, /* transposed */ true, begin, end, filters);
    });
  }
  parallel_ranges(lane, sizes_.s.batch, 1, [&](int64_t range, int64_t begin, int64_t end) {
    float *const own = sums + range * sum_size;
    BackwardSamples::run(sizes_, head, data, filters, begin, end, memory + range * group_size,
                         {data_gradient, weight_gradient ? own : nullptr, bias_gradient ? own + bias_at : nullptr});
  });
  if (weight_gradient) {
    parallel_for(lane, sizes_.s.in_channels, 4, [&](int64_t begin, int64_t end) {
      PointsToFilters::run(sizes_, sums, sum_size, num_ranges, begin, end, weight_gradient);
    });
  }
  for (int64_t c = 0; bias_gradient && c < out; ++c) {
    bias_gradient[c] = sums[bias_at + c];
    for (int64_t range = 1; range < num_ranges; ++range) bias_gradient[c] += sums[range * sum_size + bias_at + c];
  }
}

}  // namespace cohort
