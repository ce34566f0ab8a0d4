// SPDX-License-Identifier: Apache-2.0
// Pooling of all kinds. Images are [outer][depth][height][width][inner]: channels are the inner axis if they lie last,
// otherwise they belong to the outer one. A thread computes one place: 16 bytes of neighbouring channels, or one
// element if channels come first, do not fill whole vectors, or an array is not aligned.
//   forward   reads the window of each result. For training, maxima save the index of the first maximum within its
//             window, as a byte where windows have up to 256 elements.
//   backward  gathers, for each element, from the windows that contain it, in row-major order. Only norms and
//   Pooling_v1
//             read data and results; means and sums need the head gradient, maxima the saved indices, too.
//   a window that is the whole plane: some threads of a block share it, in an order that depends on the sizes alone.
// Windows of 2x2 and 3x3 are compiled with constant sizes. With 3x3 windows, two apart, in 16 bits, each pass
// moves 2.75 bytes per element of the data.
#include <algorithm>
#include <cmath>

#include "cuda/cuda_layout.hpp"
#include "cuda/op/compute_type.cuh"
#include "cuda/op/divisor.cuh"
#include "device/kernel_table.hpp"
#include "kernels/pooling_windows.hpp"

namespace cohort {
namespace {

using pooling::PoolRun;

// How a kernel reduces windows. Sums are divided for means.
enum class PoolKind { kMaximum, kSum, kNorm };
// How a kernel spreads head gradients: to the saved maximum, to all elements, or by the values of data and results.
enum class SpreadKind { kMaximum, kAll, kByValue };

// Images and windows; lengths of the axes depth, height, width.
struct PoolGrid {
  int32_t in[3], out[3], kernel[3], stride[3], pad[3];
  int32_t p;
  bool means, maxima, counts_pad, v1;
  Divisor by_stride[3];
  int64_t outer, inner;
  int64_t in_size, out_size;  // elements of an image, over all inner ones
};

int64_t volume(const int32_t (&lengths)[3]) { return int64_t(lengths[0]) * lengths[1] * lengths[2]; }

PoolGrid grid_of(const PoolRun &pool) {
  const pooling::WindowGrid &w = pool.windows;
  const bool last = w.in_channel_step == 1;
  PoolGrid g{};
  g.inner = last ? w.channels : 1;
  g.outer = w.channels == 0 ? 0 : last ? w.planes / w.channels : w.planes;
  // Sums of a few of these must fit in 32 bits; an image is indexed in 32 bits.
  constexpr int64_t kMostLength = int64_t(1) << 28, kMostElements = int64_t(1) << 31;
  const auto check = [](int64_t found, int64_t limit, const char *what) {
    if (found < limit) return;
    throw Error(Code::kUnsupported,
                text("Pooling on a GPU: expected ", what, " of less than ", limit, " elements, found ", found));
  };
  for (size_t a = 0; a < 3; ++a) {
    const int64_t stride = w.out[a] > 1 ? w.stride[a] : 1;  // does not matter for a single window
    for (int64_t length : {w.in[a], w.out[a], w.kernel[a], w.pad[a], stride}) {
      check(length, kMostLength, "axes, windows, strides and padding");
    }
    g.in[a] = int32_t(w.in[a]);
    g.out[a] = int32_t(w.out[a]);
    g.kernel[a] = int32_t(w.kernel[a]);
    g.stride[a] = int32_t(stride);
    g.pad[a] = int32_t(w.pad[a]);
    g.by_stride[a] = Divisor(stride);
  }
  for (const auto *lengths : {&w.in, &w.out, &w.kernel}) {
    int64_t size = lengths == &w.kernel ? 1 : std::min(g.inner, kMostElements);
    for (const int64_t length : *lengths) check(size *= length, kMostElements, "images and windows");
  }
  g.in_size = volume(g.in) * g.inner;
  g.out_size = volume(g.out) * g.inner;
  g.p = pool.p;
  g.means = pool.type == PoolingAttrs::kAvg;
  g.maxima = pool.type == PoolingAttrs::kMax;
  g.counts_pad = w.counts_pad;
  g.v1 = w.v1;
  return g;
}

// Whether one window is exactly the plane.
bool is_plane(const PoolGrid &g) {
  return volume(g.out) == 1 && std::equal(g.in, g.in + 3, g.kernel) &&
         std::all_of(g.pad, g.pad + 3, [](int32_t pad) { return pad == 0; });
}

// The places of an image, in memory order.
struct Places {
  Divisor vectors, row, lines, depth;

  Places(const int32_t (&lengths)[3], int64_t vectors_of_place)
      : vectors(vectors_of_place), row(lengths[2]), lines(lengths[1]), depth(lengths[0]) {}
  struct At {
    uint32_t vector, image;
    int32_t along[3];
  };
  __device__ At at(uint32_t i) const {
    At at;
    at.vector = vectors.split(&i);
    at.along[2] = int32_t(row.split(&i));
    at.along[1] = int32_t(lines.split(&i));
    at.along[0] = int32_t(depth.split(&i));
    at.image = i;
    return at;
  }
};

// Windows of any size and distance. kRow: elements of a window's row, and windows that contain an element, that are
// loaded at once. Index: of elements of a window.
template <typename I>
struct AnyWindow {
  using Index = I;
  static constexpr int kRow = 4, kShared = 2;
  static constexpr bool kFlat = false;
  __device__ static int32_t kernel(const PoolGrid &g, int a) { return g.kernel[a]; }
  __device__ static int32_t stride(const PoolGrid &g, int a) { return g.stride[a]; }
  __device__ static int32_t over_stride(const PoolGrid &g, int a, int32_t n) {
    return int32_t(g.by_stride[a].quotient(uint32_t(n)));
  }
};

// Square windows along two axes, kStride apart along both.
template <int kKernel, int kStride>
struct SquareWindow {
  using Index = uint8_t;
  static constexpr int kRow = kKernel, kShared = (kKernel + kStride - 1) / kStride;
  static constexpr bool kFlat = true;
  __device__ static int32_t kernel(const PoolGrid &, int a) { return a == 0 ? 1 : kKernel; }
  __device__ static int32_t stride(const PoolGrid &, int a) { return a == 0 ? 1 : kStride; }
  __device__ static int32_t over_stride(const PoolGrid &, int, int32_t n) { return int32_t(uint32_t(n) / kStride); }
};

// A window along one axis: it begins at `start`, which may be in the padding; [begin, end) is inside the data.
struct WindowSpan {
  int32_t start, begin, end;
};

template <typename W>
__device__ WindowSpan span_of(const PoolGrid &g, int a, int32_t at) {
  if (W::kFlat && a == 0) return {0, 0, 1};
  const int32_t start = at * W::stride(g, a) - g.pad[a], stop = start + W::kernel(g, a);
  return {start, start < 0 ? 0 : start, stop < g.in[a] ? stop : g.in[a]};
}

// The windows along one axis that contain an element.
struct Range {
  int32_t begin, end;
};

template <typename W>
__device__ Range windows_with(const PoolGrid &g, int a, int32_t at) {
  if (W::kFlat && a == 0) return {0, 1};
  const int32_t shifted = at + g.pad[a], behind = shifted - W::kernel(g, a);
  const int32_t end = W::over_stride(g, a, shifted) + 1;
  return {behind < 0 ? 0 : W::over_stride(g, a, behind) + 1, end < g.out[a] ? end : g.out[a]};
}

// The number of elements by which a mean divides, as a product over the axes; exact up to 2^24 in float.
template <typename C, typename W>
__device__ C divisor_of(const PoolGrid &g, const WindowSpan (&spans)[3]) {
  C divisor = 1;
  for (int a = W::kFlat ? 1 : 0; a < 3; ++a) {
    const int32_t kernel = W::kernel(g, a), room = g.in[a] + g.pad[a] - spans[a].start;
    const int32_t padded = g.v1 || kernel < room ? kernel : room, inside = spans[a].end - spans[a].begin;
    divisor *= C(g.counts_pad || g.v1 ? padded : inside < 0 ? 0 : inside);
  }
  return divisor < C(1) ? C(1) : divisor;
}

// The start value of a maximum, which an empty window keeps. Padding counts as zeros in Pooling_v1.
template <typename T>
__device__ ComputeOf<T> start_of_maximum(const PoolGrid &g, const WindowSpan (&spans)[3]) {
  bool has_zeros = false;
  for (int a = 0; a < 3; ++a) {
    has_zeros = has_zeros || spans[a].start < 0 || (g.pad[a] > 0 && spans[a].start + g.kernel[a] > g.in[a]);
  }
  return g.v1 && has_zeros ? ComputeOf<T>(0) : pooling::lowest<T>();
}

// The elements of a window reduced so far, for N channels.
template <typename T, int N, PoolKind kKind>
struct Reduced {
  using C = ComputeOf<T>;
  C value[N] = {};

  __device__ void take(const Several<T, N> &elements, int32_t, bool, int32_t p) {
    for (int k = 0; k < N; ++k) {
      const C x = to_compute(elements.at[k]);
      value[k] += kKind == PoolKind::kNorm ? pooling::power(x, p) : x;
    }
  }
};

// Any NaN is the result of its window. The gradient goes to the first of the largest other elements, or to the window's
// first element if that is a NaN. `first`: the window's first element. Part of a window may lack it: `best` is negative
// until an element is larger than -INFINITY.
template <typename T, int N>
struct Reduced<T, N, PoolKind::kMaximum> {
  using C = ComputeOf<T>;
  C value[N];
  int32_t best[N];
  bool nan[N];

  __device__ Reduced() {
    for (int k = 0; k < N; ++k) value[k] = C(-INFINITY), best[k] = -1, nan[k] = false;
  }
  __device__ void take(const Several<T, N> &elements, int32_t index, bool first, int32_t) {
    for (int k = 0; k < N; ++k) {
      const C x = to_compute(elements.at[k]);
      const bool larger = first || x > value[k];
      value[k] = larger ? x : value[k];
      best[k] = larger ? index : best[k];
      nan[k] = nan[k] || x != x;
    }
  }
};

// `maxima`: indices of maxima within their windows; null: not wanted.
template <typename T, int N, typename W, PoolKind kKind>
__global__ void reduce_windows(PoolGrid g, Places places, const T *data, T *result, typename W::Index *maxima,
                               uint32_t count) {
  using C = ComputeOf<T>;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const Places::At at = places.at(i);
    const T *const image = data + at.image * g.in_size + int64_t(at.vector) * N;
    const WindowSpan spans[3] = {span_of<W>(g, 0, at.along[0]), span_of<W>(g, 1, at.along[1]),
                                 span_of<W>(g, 2, at.along[2])};
    Reduced<T, N, kKind> all;
    bool first = true;
    for (int32_t d = spans[0].begin; d < spans[0].end; ++d) {
      for (int32_t h = spans[1].begin; h < spans[1].end; ++h) {
        const T *const line = image + int64_t((d * g.in[1] + h) * g.in[2]) * g.inner;
        const int32_t index =
            ((d - spans[0].start) * W::kernel(g, 1) + h - spans[1].start) * W::kernel(g, 2) - spans[2].start;
        for (int32_t w = spans[2].begin; w < spans[2].end; w += W::kRow) {
          Several<T, N> row[W::kRow];
          for (int j = 0; j < W::kRow; ++j) {
            if (w + j < spans[2].end) row[j] = load_several<N>(line + (w + j) * g.inner);
          }
          for (int j = 0; j < W::kRow; ++j) {
            if (w + j < spans[2].end) all.take(row[j], index + w + j, first && j == 0, g.p);
          }
          first = false;
        }
      }
    }
    Several<T, N> values;
    if constexpr (kKind == PoolKind::kMaximum) {
      const C start = start_of_maximum<T>(g, spans);
      for (int k = 0; k < N; ++k) {
        values.at[k] = from_compute<T>(all.nan[k] ? C(NAN) : all.value[k] > start ? all.value[k] : start);
      }
      if (maxima) {
        Several<typename W::Index, N> best;
        for (int k = 0; k < N; ++k) best.at[k] = typename W::Index(all.best[k]);
        store_several(maxima + int64_t(i) * N, best);
      }
    } else {
      const C divisor = g.means ? divisor_of<C, W>(g, spans) : C(1);
      for (int k = 0; k < N; ++k) {
        C value = all.value[k];
        if constexpr (kKind == PoolKind::kNorm) value = pooling::root(value, g.p);
        values.at[k] = from_compute<T>(g.means ? value / divisor : value);
      }
    }
    store_several(result + int64_t(i) * N, values);
  }
}

// The share of a window's head gradient that an element x gets if the shares depend on values: y is the result.
template <typename C>
__device__ C share_by_value(const PoolGrid &g, C head, C x, C y) {
  if (g.maxima) return x == y ? head : C(0);  // Pooling_v1: each of several maxima gets it all
  if (y == C(0) && g.p > 1) return C(0);
  const C share = x / y;
  return head * (g.p == 1 ? C(1) : g.p == 2 ? share : share * share);
}

// `data` and `result` are read by kByValue only, `maxima` by kMaximum only.
template <typename T, int N, typename W, SpreadKind kKind>
__global__ void spread_gradients(PoolGrid g, Places places, const T *head, const T *data, const T *result,
                                 const typename W::Index *maxima, T *grad, uint32_t count) {
  using C = ComputeOf<T>;
  using Index = typename W::Index;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const Places::At at = places.at(i);
    const int64_t image = at.image * g.out_size + int64_t(at.vector) * N;
    const Range over[3] = {windows_with<W>(g, 0, at.along[0]), windows_with<W>(g, 1, at.along[1]),
                           windows_with<W>(g, 2, at.along[2])};
    Several<T, N> x;
    if constexpr (kKind == SpreadKind::kByValue) x = load_several<N>(data + int64_t(i) * N);
    C sum[N] = {};
    for (int32_t d = over[0].begin; d < over[0].end; ++d) {
      for (int32_t h = over[1].begin; h < over[1].end; ++h) {
        const int64_t line = image + int64_t((d * g.out[1] + h) * g.out[2]) * g.inner;
        for (int32_t w = over[2].begin; w < over[2].end; w += W::kShared) {
          Several<T, N> heads[W::kShared], results[W::kShared];
          Several<Index, N> best[W::kShared];
          for (int j = 0; j < W::kShared; ++j) {
            if (w + j >= over[2].end) continue;
            const int64_t from = line + (w + j) * g.inner;
            heads[j] = load_several<N>(head + from);
            if constexpr (kKind == SpreadKind::kMaximum) best[j] = load_several<N>(maxima + from);
            if constexpr (kKind == SpreadKind::kByValue) results[j] = load_several<N>(result + from);
          }
          for (int j = 0; j < W::kShared; ++j) {
            if (w + j >= over[2].end) continue;
            const WindowSpan spans[3] = {span_of<W>(g, 0, d), span_of<W>(g, 1, h), span_of<W>(g, 2, w + j)};
            // The index of this element in the window.
            const int32_t own =
                ((at.along[0] - spans[0].start) * W::kernel(g, 1) + at.along[1] - spans[1].start) * W::kernel(g, 2) +
                at.along[2] - spans[2].start;
            const C divisor = kKind == SpreadKind::kAll && g.means ? divisor_of<C, W>(g, spans) : C(1);
            for (int k = 0; k < N; ++k) {
              const C all = to_compute(heads[j].at[k]);
              if constexpr (kKind == SpreadKind::kMaximum) {
                sum[k] += best[j].at[k] == Index(own) ? all : C(0);
              } else if constexpr (kKind == SpreadKind::kAll) {
                sum[k] += g.means ? all / divisor : all;
              } else {
                sum[k] += share_by_value(g, all, to_compute(x.at[k]), to_compute(results[j].at[k]));
              }
            }
          }
        }
      }
    }
    Several<T, N> values;
    for (int k = 0; k < N; ++k) values.at[k] = from_compute<T>(sum[k]);
    store_several(grad + int64_t(i) * N, values);
  }
}

// ---- a window that is the whole plane

// How threads share planes: `rows` threads take every rows-th place each, for each of `lanes` neighbouring vectors of
// channels; their results are joined in a fixed tree. All are powers of two.
struct PlaneShares {
  int32_t places;
  int32_t lanes, rows, units;  // units: of lanes * rows threads in a block
  int64_t vectors, groups;     // of an image: vectors of channels, and groups of `lanes` of them
  int64_t count;               // groups of all images

  // rows does not depend on the width of vectors, so that results do not depend on alignment.
  PlaneShares(const PoolGrid &g, int width)
      : places(int32_t(volume(g.in))), lanes(1), rows(1), vectors(g.inner / width) {
    const int32_t most_rows = g.inner == 1 ? kBlockThreads : g.inner < 256 ? 32 : 8;
    while (rows < most_rows && rows * 4 < places) rows *= 2;
    while (lanes * rows < kBlockThreads && lanes < 32 && lanes < vectors) lanes *= 2;
    units = kBlockThreads / (lanes * rows);
    groups = (vectors + lanes - 1) / lanes;
    count = groups * g.outer;
  }
};

template <typename T, int N, PoolKind kKind>
__global__ void reduce_planes(PoolGrid g, PlaneShares shares, const T *data, T *result, uint8_t *bytes,
                              int32_t *words) {
  using C = ComputeOf<T>;
  constexpr bool kMaximum = kKind == PoolKind::kMaximum;
  COHORT_SHARED(C, values, [N * kBlockThreads]);
  COHORT_SHARED(int32_t, best, [kMaximum ? N * kBlockThreads : 1]);
  COHORT_SHARED(bool, nan, [kMaximum ? N * kBlockThreads : 1]);
  const int32_t thread = int32_t(threadIdx.x), lane = thread % shares.lanes, row = thread / shares.lanes % shares.rows,
                unit = thread / (shares.lanes * shares.rows);
  for (int64_t first = int64_t(blockIdx.x) * shares.units; first < shares.count;
       first += int64_t(gridDim.x) * shares.units) {
    const int64_t group = first + unit, image = group / shares.groups;
    const int64_t vector = group % shares.groups * shares.lanes + lane;
    const bool used = group < shares.count && vector < shares.vectors;
    Reduced<T, N, kKind> all;
    if (used) {
      const T *const from = data + image * g.in_size + vector * N;
      const uint32_t places = uint32_t(shares.places);
      constexpr int kAhead = 4;  // loads before the first use
      for (uint32_t place = uint32_t(row); place < places; place += kAhead * uint32_t(shares.rows)) {
        Several<T, N> elements[kAhead];
        for (int j = 0; j < kAhead; ++j) {
          const uint32_t at = place + uint32_t(j * shares.rows);
          if (at < places) elements[j] = load_several<N>(from + at * g.inner);
        }
        for (int j = 0; j < kAhead; ++j) {
          const uint32_t at = place + uint32_t(j * shares.rows);
          if (at < places) all.take(elements[j], int32_t(at), at == 0, 1);
        }
      }
    }
    for (int k = 0; k < N; ++k) {
      const int32_t own = k * kBlockThreads + thread;
      values[own] = all.value[k];
      if constexpr (kMaximum) best[own] = all.best[k], nan[own] = all.nan[k];
    }
    for (int32_t half = shares.rows / 2; half > 0; half /= 2) {
      __syncthreads();
      if (row >= half) continue;
      for (int k = 0; k < N; ++k) {
        const int32_t own = k * kBlockThreads + thread, other = own + half * shares.lanes;
        if constexpr (kMaximum) {
          nan[own] = nan[own] || nan[other];
          // The plane's first element is in row 0. If it is a NaN, no other element replaces it.
          if (best[other] < 0 || (best[own] >= 0 && values[own] != values[own])) continue;
          if (best[own] < 0 || values[other] > values[own] ||
              (values[other] == values[own] && best[other] < best[own])) {
            values[own] = values[other];
            best[own] = best[other];
          }
        } else {
          values[own] += values[other];
        }
      }
    }
    if (row == 0 && used) {
      const int64_t at = image * g.out_size + vector * N;
      const C divisor = g.means && shares.places > 0 ? C(shares.places) : C(1);
      Several<T, N> reduced;
      for (int k = 0; k < N; ++k) {
        const int32_t own = k * kBlockThreads + thread;
        if constexpr (kMaximum) {
          const C start = pooling::lowest<T>();
          reduced.at[k] = from_compute<T>(nan[own] ? C(NAN) : values[own] > start ? values[own] : start);
          if (bytes) bytes[at + k] = uint8_t(best[own]);
          if (words) words[at + k] = best[own];
        } else {
          reduced.at[k] = from_compute<T>(g.means ? values[own] / divisor : values[own]);
        }
      }
      store_several(result + at, reduced);
    }
    __syncthreads();  // before the next ones
  }
}

// ---- launches

// Saved indices of maxima are bytes or, for large windows, words.
bool fits_bytes(const PoolGrid &g) { return volume(g.kernel) <= 256; }

template <typename T>
using Reduce = void (*)(const PoolGrid &g, const Lane &lane, const T *data, T *result, void *maxima);
template <typename T>
using Spread = void (*)(const PoolGrid &g, const Lane &lane, const T *head, const T *data, const T *result,
                        const void *maxima, T *grad);

// Calls fn(first image, number of threads) so that a launch has fewer than 2^31 threads; an image has `vectors`.
template <typename Fn>
void for_images(const PoolGrid &g, int64_t vectors, const Fn &fn) {
  if (vectors == 0) return;
  const int64_t most = INT32_MAX / vectors;
  for (int64_t image = 0; image < g.outer; image += most) {
    fn(image, uint32_t(std::min(most, g.outer - image) * vectors));
  }
}

template <typename T, int N, typename W, PoolKind kKind>
void launch_reduce(const PoolGrid &g, const Lane &lane, const T *data, T *result, void *maxima) {
  using Index = typename W::Index;
  for_images(g, g.out_size / N, [&](int64_t image, uint32_t count) {
    const int64_t at = image * g.out_size;
    launch(reduce_windows<T, N, W, kKind>, flat_grid(count), lane.stream, g, Places(g.out, g.inner / N),
           data + image * g.in_size, result + at, maxima ? static_cast<Index *>(maxima) + at : nullptr, count);
  });
}

template <typename T, int N, PoolKind kKind>
void launch_reduce_planes(const PoolGrid &g, const Lane &lane, const T *data, T *result, void *maxima) {
  const PlaneShares shares(g, N);
  if (shares.count == 0) return;
  const int64_t blocks = (shares.count + shares.units - 1) / shares.units;
  launch(reduce_planes<T, N, kKind>, flat_grid(std::min<int64_t>(blocks, INT32_MAX) * kBlockThreads), lane.stream, g,
         shares, data, result, fits_bytes(g) ? static_cast<uint8_t *>(maxima) : nullptr,
         fits_bytes(g) ? nullptr : static_cast<int32_t *>(maxima));
}

template <typename T, int N, typename W, SpreadKind kKind>
void launch_spread(const PoolGrid &g, const Lane &lane, const T *head, const T *data, const T *result,
                   const void *maxima, T *grad) {
  using Index = typename W::Index;
  for_images(g, g.in_size / N, [&](int64_t image, uint32_t count) {
    const int64_t in = image * g.in_size, out = image * g.out_size;
    launch(spread_gradients<T, N, W, kKind>, flat_grid(count), lane.stream, g, Places(g.in, g.inner / N), head + out,
           data ? data + in : nullptr, result ? result + out : nullptr,
           maxima ? static_cast<const Index *>(maxima) + out : nullptr, grad + in, count);
  });
}

// Returns fn(W()) for the type of the windows. kIndexed: kernels differ by the type of saved indices. Only the general
// ones are compiled for double, which is seldom used.
template <typename T, bool kIndexed, typename Fn>
auto for_window(const PoolGrid &g, const Fn &fn) {
  if constexpr (!std::is_same_v<T, double>) {
    const auto is_square = [&](int32_t kernel, int32_t stride) {
      return g.in[0] == 1 && g.out[0] == 1 && g.kernel[0] == 1 && g.pad[0] == 0 && g.kernel[1] == kernel &&
             g.kernel[2] == kernel && g.stride[1] == stride && g.stride[2] == stride;
    };
    if (is_square(2, 2)) return fn(SquareWindow<2, 2>());
    if (is_square(3, 2)) return fn(SquareWindow<3, 2>());
    if (is_square(3, 1)) return fn(SquareWindow<3, 1>());
  }
  if constexpr (kIndexed) {
    if (!fits_bytes(g)) return fn(AnyWindow<int32_t>());
  }
  return fn(AnyWindow<uint8_t>());
}

template <typename T, int N>
Reduce<T> reduce_for(const PoolGrid &g, PoolingAttrs::Type type) {
  if (type == PoolingAttrs::kLp) return launch_reduce<T, N, AnyWindow<uint8_t>, PoolKind::kNorm>;
  if (type == PoolingAttrs::kMax) {
    if (is_plane(g)) return launch_reduce_planes<T, N, PoolKind::kMaximum>;
    return for_window<T, true>(
        g, [](auto w) -> Reduce<T> { return launch_reduce<T, N, decltype(w), PoolKind::kMaximum>; });
  }
  if (is_plane(g)) return launch_reduce_planes<T, N, PoolKind::kSum>;
  return for_window<T, false>(g, [](auto w) -> Reduce<T> { return launch_reduce<T, N, decltype(w), PoolKind::kSum>; });
}

template <typename T, int N>
Spread<T> spread_for(const PoolGrid &g, SpreadKind kind) {
  if (kind == SpreadKind::kByValue) return launch_spread<T, N, AnyWindow<uint8_t>, SpreadKind::kByValue>;
  if (kind == SpreadKind::kMaximum) {
    return for_window<T, true>(
        g, [](auto w) -> Spread<T> { return launch_spread<T, N, decltype(w), SpreadKind::kMaximum>; });
  }
  return for_window<T, false>(g,
                              [](auto w) -> Spread<T> { return launch_spread<T, N, decltype(w), SpreadKind::kAll>; });
}

// Gives all images of a step the layout that is channels last although their shapes say otherwise, or row-major order.
void lay_out(StepSpec *spec, bool channels_last) {
  for (std::vector<TensorSpec> *images : {&spec->inputs, &spec->outputs}) {
    for (TensorSpec &image : *images) image.layout = channels_last ? channels_last_layout(image) : nullptr;
  }
}

class PoolingCuda : public Kernel {
 public:
  explicit PoolingCuda(bool lies_last) : lies_last_(lies_last) {}
  bool lies_last() const { return lies_last_; }  // the images, although their shapes say otherwise

 private:
  const bool lies_last_;
};

bool saves_maxima(const PoolingAttrs &attrs) { return attrs.pool_type == PoolingAttrs::kMax && !attrs.v1; }

template <typename T>
class PoolingOf final : public PoolingCuda {
 public:
  PoolingOf(StepSpec &spec, bool lies_last)
      : PoolingCuda(lies_last),
        g_(grid_of(pooling::pool_run_of(spec.attrs_as<PoolingAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape,
                                        lies_last))),
        saves_(spec.keep_for_backward && saves_maxima(spec.attrs_as<PoolingAttrs>())),
        elements_(reduce_for<T, 1>(g_, spec.attrs_as<PoolingAttrs>().pool_type)),
        vectors_(reduce_for<T, Vector<T>::kSize>(g_, spec.attrs_as<PoolingAttrs>().pool_type)) {
    if (saves_) spec.saved_bytes = size_t(spec.outputs[0].shape.size()) * (fits_bytes(g_) ? 1 : sizeof(int32_t));
  }
  void run(const Args &args, const Lane &lane) const override {
    const bool vectors = g_.inner % Vector<T>::kSize == 0 && can_be_vectors({args.inputs[0], args.outputs[0]});
    (vectors ? vectors_ : elements_)(g_, lane, args.in<T>(0), args.out<T>(0), saves_ ? args.saved : nullptr);
  }

 private:
  const PoolGrid g_;
  const bool saves_;
  const Reduce<T> elements_, vectors_;
};

// Inputs: head gradient, data, output.
template <typename T>
class PoolingBackwardOf final : public Kernel {
 public:
  PoolingBackwardOf(StepSpec &spec, bool lies_last)
      : g_(grid_of(pooling::pool_run_of(spec.attrs_as<PoolingAttrs>(), spec.inputs[1].shape, spec.inputs[0].shape,
                                        lies_last))),
        kind_(kind_of(spec.attrs_as<PoolingAttrs>())),
        elements_(spread_for<T, 1>(g_, kind_)),
        vectors_(spread_for<T, Vector<T>::kSize>(g_, kind_)) {
    if (kind_ != SpreadKind::kByValue) spec.unread = {1, 2};
  }
  void run(const Args &args, const Lane &lane) const override {
    const bool by_value = kind_ == SpreadKind::kByValue;
    const T *const data = by_value ? args.in<T>(1) : nullptr, *const result = by_value ? args.in<T>(2) : nullptr;
    const bool vectors = g_.inner % Vector<T>::kSize == 0 &&
                         can_be_vectors({args.inputs[0], data, result, args.outputs[0]});  // null is aligned
    (vectors ? vectors_ : elements_)(g_, lane, args.in<T>(0), data, result,
                                     kind_ == SpreadKind::kMaximum ? args.saved : nullptr, args.out<T>(0));
  }

 private:
  static SpreadKind kind_of(const PoolingAttrs &attrs) {
    if (saves_maxima(attrs)) return SpreadKind::kMaximum;
    const bool all = attrs.pool_type == PoolingAttrs::kAvg || attrs.pool_type == PoolingAttrs::kSum;
    return all ? SpreadKind::kAll : SpreadKind::kByValue;
  }

  const PoolGrid g_;
  const SpreadKind kind_;
  const Spread<T> elements_, vectors_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const bool lies_last = !channels_last(spec.attrs_as<PoolingAttrs>().layout) && lies_channels_last(spec.inputs[0]);
  lay_out(&spec, lies_last);
  return dispatch_float(spec.inputs[0].dtype, "Pooling", [&](auto type) -> std::unique_ptr<Kernel> {
    return std::make_unique<PoolingOf<decltype(type)>>(spec, lies_last);
  });
}

// Images have the layout of the forward step, as the saved indices have.
std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto *const forward = dynamic_cast<const PoolingCuda *>(spec.forward);
  const bool lies_last = forward && forward->lies_last();
  lay_out(&spec, lies_last);
  return dispatch_float(spec.inputs[0].dtype, "Pooling", [&](auto type) -> std::unique_ptr<Kernel> {
    return std::make_unique<PoolingBackwardOf<decltype(type)>>(spec, lies_last);
  });
}

COHORT_KERNEL_BY(cuda, Pooling, make_forward).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, Pooling_v1, make_forward).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Pooling, make_backward).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Pooling_v1, make_backward).dtypes(kFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
