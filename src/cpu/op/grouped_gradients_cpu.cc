// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/grouped_gradients.hpp"

#include <algorithm>

#include "base/dtype_cast.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace {

using namespace convolution;

constexpr int64_t kLanes = 16;    // channels in one unit of work
constexpr int64_t kTaps = 8;      // neighbours in a row of the window that share loads of the arrays
constexpr int64_t kPlaces = 32;   // places of a row of the data at once
constexpr int64_t kWindow = 128;  // the largest window whose weights are transposed for the gradient of the data

// Sums computed at once: either L channels, each paired with itself, or four channels of the data, each paired with
// four of the result.
template <int L>
struct Alone {
  static constexpr int kSums = L;
  template <typename T>
  static void add(const T *x, const T *y, float *sums) {
    for (int l = 0; l < L; ++l) sums[l] += cast_element<float>(x[l]) * cast_element<float>(y[l]);
  }
};
struct Fours {
  static constexpr int kSums = 16;
  template <typename T>
  static void add(const T *x, const T *y, float *sums) {
    for (int i = 0; i < 4; ++i) {
      for (int o = 0; o < 4; ++o) sums[i * 4 + o] += cast_element<float>(x[i]) * cast_element<float>(y[o]);
    }
  }
};

// Calls each(lanes, c) for groups of 16, 8, 4 or single channels of [begin, end) that are contiguous in both arrays;
// lanes() is a constant.
template <typename Fn>
void for_channels(const GroupedSizes &z, int64_t begin, int64_t end, const Fn &each) {
  const int64_t run = std::min(z.data.run, z.result.run);
  for (int64_t c = begin; c < end;) {
    const int64_t left = std::min(end, (c / run + 1) * run) - c;
    if (left >= 16) {
      each(std::integral_constant<int, 16>(), c);
      c += 16;
    } else if (left >= 8) {
      each(std::integral_constant<int, 8>(), c);
      c += 8;
    } else if (left >= 4) {
      each(std::integral_constant<int, 4>(), c);
      c += 4;
    } else {
      each(std::integral_constant<int, 1>(), c);
      ++c;
    }
  }
}

// The places of the result for which tap k of the window lies on the data, along axis a.
KernelRange places_of(const ConvolutionSizes &s, size_t a, int64_t k) {
  return inside(k * s.dilate[a] - s.pad[a], s.stride[a], s.out[a], s.in[a]);
}

// Adds the taps [first, first + count) of row (i, j) of the window, for the channels at x in the data and at y in the
// result. Each row of places is a sum of its own, which keeps the rounding errors of long sums small.
template <typename Product, typename T>
void row_of_taps(const GroupedSizes &z, int64_t i, int64_t j, int64_t first, int64_t count, const T *x, const T *y,
                 float (*totals)[kLanes]) {
  const ConvolutionSizes &s = z.s;
  const KernelRange depth = places_of(s, 0, i), height = places_of(s, 1, j);
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t d = depth.begin; d < depth.end; ++d) {
      for (int64_t h = height.begin; h < height.end; ++h) {
        const Axes from{d * s.stride[0] - s.pad[0] + i * s.dilate[0], h * s.stride[1] - s.pad[1] + j * s.dilate[1], 0};
        const T *const x_row = x + n * z.data.batch_step + offset_of(from, z.data.step);
        const T *const y_row = y + n * z.result.batch_step + offset_of({d, h, 0}, z.result.step);
        for (int64_t t = 0; t < count; ++t) {
          const int64_t start = (first + t) * s.dilate[2] - s.pad[2];
          const KernelRange width = places_of(s, 2, first + t);
          float sums[Product::kSums] = {};
          for (int64_t w = width.begin; w < width.end; ++w) {
            Product::add(x_row + (start + w * s.stride[2]) * z.data.step[2], y_row + w * z.result.step[2], sums);
          }
          for (int l = 0; l < Product::kSums; ++l) totals[t][l] += sums[l];
        }
      }
    }
  }
}

// Computes all taps; put(k, sums) stores those of tap k.
template <typename Product, typename T, typename Put>
void all_taps(const GroupedSizes &z, const T *x, const T *y, const Put &put) {
  const Axes &kernel = z.s.kernel;
  for (int64_t i = 0; i < kernel[0]; ++i) {
    for (int64_t j = 0; j < kernel[1]; ++j) {
      for (int64_t first = 0; first < kernel[2]; first += kTaps) {
        const int64_t count = std::min(kTaps, kernel[2] - first);
        float totals[kTaps][kLanes] = {};
        row_of_taps<Product>(z, i, j, first, count, x, y, totals);
        for (int64_t t = 0; t < count; ++t) put(offset_of({i, j, first + t}, z.s.weight_step), totals[t]);
      }
    }
  }
}

// Computes channels [begin, end), each a group.
template <typename T>
struct DepthwiseWeight {
  static void run(const GroupedSizes &z, const T *head, const T *data, T *gradient, int64_t begin, int64_t end) {
    for_channels(z, begin, end, [&](auto lanes, int64_t c) {
      constexpr int L = decltype(lanes)::value;
      all_taps<Alone<L>>(z, data + z.data.channel(c), head + z.result.channel(c), [&](int64_t at, const float *sums) {
        for (int l = 0; l < L; ++l) gradient[(c + l) * z.s.weight_out_step + at] = cast_element<T>(sums[l]);
      });
    });
  }
};

// Pairs four channels of the result with four of the data: computes pairs [begin, end), the data's channels fastest.
template <typename T>
struct WeightOfFours {
  static void run(const GroupedSizes &z, const T *head, const T *data, T *gradient, int64_t begin, int64_t end) {
    const ConvolutionSizes &s = z.s;
    const int64_t fours = s.in_channels / 4;
    for (int64_t pair = begin; pair < end; ++pair) {
      const int64_t out = pair / fours * 4, in = pair % fours * 4;
      const int64_t channel = out / s.out_channels * s.in_channels + in;
      T *const to = gradient + out * s.weight_out_step + in * s.weight_in_step;
      all_taps<Fours>(z, data + z.data.channel(channel), head + z.result.channel(out),
                      [&](int64_t at, const float *sums) {
                        for (int l = 0; l < 16; ++l) {
                          to[l % 4 * s.weight_out_step + l / 4 * s.weight_in_step + at] = cast_element<T>(sums[l]);
                        }
                      });
    }
  }
};

// The place of the result that tap k reads into `at` along axis a; -1: none.
int64_t place_under(const ConvolutionSizes &s, size_t a, int64_t k, int64_t at) {
  const int64_t shifted = at + s.pad[a] - k * s.dilate[a];
  return shifted >= 0 && shifted % s.stride[a] == 0 && shifted / s.stride[a] < s.out[a] ? shifted / s.stride[a] : -1;
}

// Computes places [first, first + count) of row (i, j) of the gradient, for L channels; weight[q] are the weights of
// tap q.
template <int L, typename T>
void row_of_data(const GroupedSizes &z, int64_t i, int64_t j, int64_t first, int64_t count, const T *head,
                 const float (*weight)[kLanes], T *to) {
  const ConvolutionSizes &s = z.s;
  float sums[kPlaces][L] = {};
  for (int64_t q = 0; q < volume(s.kernel); q += s.kernel[2]) {
    const Axes k = place_in(s.kernel, q);
    const int64_t d = place_under(s, 0, k[0], i), h = place_under(s, 1, k[1], j);
    if (d < 0 || h < 0) continue;
    const T *const y = head + offset_of({d, h, 0}, z.result.step);
    for (int64_t t = 0; t < s.kernel[2]; ++t) {
      const int64_t start = t * s.dilate[2] - s.pad[2] - first;
      const KernelRange width = inside(start, s.stride[2], s.out[2], count);
      for (int64_t w = width.begin; w < width.end; ++w) {
        for (int l = 0; l < L; ++l) {
          sums[start + w * s.stride[2]][l] += cast_element<float>(y[w * z.result.step[2] + l]) * weight[q + t][l];
        }
      }
    }
  }
  for (int64_t x = 0; x < count; ++x) {
    for (int l = 0; l < L; ++l) to[x * z.data.step[2] + l] = cast_element<T>(sums[x][l]);
  }
}

// Computes channels [begin, end), each a group.
template <typename T>
struct DepthwiseData {
  static void run(const GroupedSizes &z, const T *head, const T *weight, T *gradient, int64_t begin, int64_t end) {
    const ConvolutionSizes &s = z.s;
    for_channels(z, begin, end, [&](auto lanes, int64_t c) {
      constexpr int L = decltype(lanes)::value;
      float weights[kWindow][kLanes];
      for (int64_t q = 0; q < volume(s.kernel); ++q) {
        const T *const tap = weight + c * s.weight_out_step + offset_of(place_in(s.kernel, q), s.weight_step);
        for (int l = 0; l < L; ++l) weights[q][l] = cast_element<float>(tap[l * s.weight_out_step]);
      }
      for (int64_t n = 0; n < s.batch; ++n) {
        const T *const y = head + n * z.result.batch_step + z.result.channel(c);
        T *const to = gradient + n * z.data.batch_step + z.data.channel(c);
        for (int64_t p = 0; p < volume(s.in); p += s.in[2]) {
          const Axes at = place_in(s.in, p);
          for (int64_t first = 0; first < s.in[2]; first += kPlaces) {
            row_of_data<L>(z, at[0], at[1], first, std::min(kPlaces, s.in[2] - first), y, weights,
                           to + offset_of({at[0], at[1], first}, z.data.step));
          }
        }
      }
    });
  }
};

template <typename Fn>
void dispatch(Dtype dtype, const Fn &each) {
  if (dtype == Dtype::kBfloat16) {
    each(Bfloat16());
  } else {
    each(float());
  }
}

// Runs Body over `count` units of work, `step` at a time.
template <template <typename> class Body>
void run_loops(const GroupedSizes &sizes, Dtype dtype, const void *a, const void *b, void *to, int64_t count,
               int64_t step, const Lane &lane) {
  dispatch(dtype, [&](auto type) {
    using T = decltype(type);
    static const auto loops = best_version<Body<T>>();
    parallel_for(lane, (count + step - 1) / step, 1, [&](int64_t begin, int64_t end) {
      loops(sizes, static_cast<const T *>(a), static_cast<const T *>(b), static_cast<T *>(to), begin * step,
            std::min(end * step, count));
    });
  });
}

}  // namespace

std::optional<ChannelRuns> channel_runs(const dnn::Desc &desc) {
  const dnn::Blocking b = dnn::blocking_of(desc);
  if (!b.blocked || b.offset != 0 || b.dims != b.padded_dims || b.inner_blocks.size() > 1) return std::nullopt;
  const bool blocks = !b.inner_blocks.empty();
  if (blocks ? b.inner_axes[0] != 1 : b.strides[1] != 1) return std::nullopt;
  ChannelRuns runs{blocks ? b.inner_blocks[0] : b.dims[1], blocks ? b.strides[1] : 0, b.strides[0], {}};
  const size_t num_axes = b.dims.size() - 2;
  for (size_t a = 0; a < num_axes; ++a) runs.step[3 - num_axes + a] = b.strides[2 + a];
  return runs;
}

std::unique_ptr<GroupedGradients> GroupedGradients::make(const ConvolutionSizes &sizes, Dtype dtype,
                                                         const dnn::Desc &data, const dnn::Desc &result) {
  const auto in = channel_runs(data), out = channel_runs(result);
  if (!in || !out || (dtype != Dtype::kFloat32 && dtype != Dtype::kBfloat16)) return nullptr;
  const bool alone = sizes.in_channels == 1 && sizes.out_channels == 1;
  const bool fours = sizes.in_channels % 4 == 0 && sizes.out_channels % 4 == 0 && in->run % 4 == 0 && out->run % 4 == 0;
  if (!alone && !fours) return nullptr;
  return std::unique_ptr<GroupedGradients>(new GroupedGradients({sizes, *in, *out}, dtype));
}

bool GroupedGradients::has_data_gradient() const { return depthwise_ && volume(sizes_.s.kernel) <= kWindow; }

void GroupedGradients::of_data(const void *head, const void *weight, void *gradient, const Lane &lane) const {
  run_loops<DepthwiseData>(sizes_, dtype_, head, weight, gradient, sizes_.s.groups, kLanes, lane);
}

void GroupedGradients::of_weight(const void *head, const void *data, void *gradient, const Lane &lane) const {
  const ConvolutionSizes &s = sizes_.s;
  if (depthwise_) {
    run_loops<DepthwiseWeight>(sizes_, dtype_, head, data, gradient, s.groups, kLanes, lane);
  } else {
    const int64_t pairs = s.groups * (s.out_channels / 4) * (s.in_channels / 4);
    run_loops<WeightOfFours>(sizes_, dtype_, head, data, gradient, pairs, 1, lane);
  }
}

}  // namespace cohort
