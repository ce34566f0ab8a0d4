// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/image_convolution.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"

#ifdef COHORT_SIMD_VERSIONS
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2")
#endif

namespace cohort {
namespace {

using Sizes = ImageConvolution::Sizes;

constexpr int64_t kLanes = 8, kPlaces = 8, kVectors = 3;  // sums in 24 registers

using Lanes [[gnu::vector_size(32), gnu::may_alias]] = float;
using LanesAnywhere [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;

// Copies what the windows of one row of the result read, row by row, with zeros for padding.
void gather_rows(const Sizes &z, const float *data, int64_t sample, int64_t y, float *rows) {
  const ConvolutionSizes &s = z.s;
  std::memset(rows, 0, size_t(s.kernel[1] * z.row()) * sizeof(float));
  for (int64_t k = 0; k < s.kernel[1]; ++k) {
    const int64_t at = y * s.stride[1] - s.pad[1] + k * s.dilate[1];
    if (at < 0 || at >= s.in[1]) continue;
    const float *const from = data + sample * z.data.batch_step + at * z.data.step[1];
    float *const to = rows + k * z.row() + s.pad[2];
    for (int64_t x = 0; x < s.in[2]; ++x) to[x] = from[x * z.data.step[2]];
  }
}

// Computes kPlaces places from x on, for N vectors of filters.
template <int N>
void compute_places(const Sizes &z, const float *rows, const float *filters, const float *bias, int64_t x,
                    int64_t count, float *to) {
  const ConvolutionSizes &s = z.s;
  const int64_t stride = s.stride[2], width = z.width();
  Lanes sums[kPlaces][N];
#pragma GCC unroll 8
  for (int p = 0; p < kPlaces; ++p) {
#pragma GCC unroll 3
    for (int n = 0; n < N; ++n) sums[p][n] = *reinterpret_cast<const LanesAnywhere *>(bias + n * kLanes);
  }
  for (int64_t row = 0; row < s.kernel[1]; ++row) {
    const float *from = rows + row * z.row() + x * stride;
    for (int64_t k = 0; k < s.kernel[2]; ++k, from += s.dilate[2], filters += width) {
      Lanes taps[N];
#pragma GCC unroll 3
      for (int n = 0; n < N; ++n) taps[n] = *reinterpret_cast<const LanesAnywhere *>(filters + n * kLanes);
#pragma GCC unroll 8
      for (int p = 0; p < kPlaces; ++p) {
#pragma GCC unroll 3
        for (int n = 0; n < N; ++n) sums[p][n] += taps[n] * from[p * stride];
      }
    }
  }
  // If all filters are computed here, the next place overwrites the lanes behind the last filter.
  const bool whole = count == s.out_channels;
#pragma GCC unroll 8
  for (int p = 0; p < kPlaces; ++p, to += z.result.step[2]) {
#pragma GCC unroll 3
    for (int n = 0; n < N; ++n) {
      if (n + 1 < N || count == N * kLanes || (whole && p + 1 < kPlaces)) {
        *reinterpret_cast<LanesAnywhere *>(to + n * kLanes) = sums[p][n];
      } else {
        alignas(32) float last[kLanes];
        *reinterpret_cast<Lanes *>(last) = sums[p][n];
        std::memcpy(to + n * kLanes, last, size_t(count - n * kLanes) * sizeof(float));
      }
    }
  }
}

// Computes rows [begin, end) of the result, over all samples. The last places of a row may be computed twice.
void compute_rows(const Sizes &z, const float *data, const float *filters, const float *bias, int64_t begin,
                  int64_t end, float *rows, float *result) {
  const ConvolutionSizes &s = z.s;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t sample = i / s.out[1], y = i % s.out[1];
    gather_rows(z, data, sample, y, rows);
    for (int64_t c = 0; c < s.out_channels; c += kVectors * kLanes) {
      const int64_t count = std::min(kVectors * kLanes, s.out_channels - c);
      const auto compute = count > 2 * kLanes ? compute_places<3>
                           : count > kLanes   ? compute_places<2>
                                              : compute_places<1>;
      for (int64_t first = 0; first < s.out[2]; first += kPlaces) {
        const int64_t x = std::min(first, s.out[2] - kPlaces);
        compute(z, rows, filters + c, bias + c, x, count,
                result + sample * z.result.batch_step + y * z.result.step[1] + x * z.result.step[2] + c);
      }
    }
  }
}

}  // namespace
}  // namespace cohort
#ifdef COHORT_SIMD_VERSIONS
#pragma GCC pop_options
#endif

namespace cohort {

int64_t ImageConvolution::Sizes::width() const { return (s.out_channels + kLanes - 1) / kLanes * kLanes; }

std::unique_ptr<ImageConvolution> ImageConvolution::make(const ConvolutionSizes &s,
                                                         const std::optional<ChannelRuns> &data,
                                                         const std::optional<ChannelRuns> &result) {
  if (simd_level() != Simd::kAvx512 || !data || !result || result->run != s.out_channels) return nullptr;
  if (s.groups != 1 || s.in[0] != 1 || s.out[0] != 1 || s.kernel[0] != 1) return nullptr;
  const int64_t filled_up = (s.out_channels + 15) / 16 * 16;  // the number of filters that oneDNN computes
  const Sizes sizes{s, *data, *result};
  if (s.in_channels != 1 || sizes.width() == filled_up || s.out[2] < kPlaces) return nullptr;
  return std::unique_ptr<ImageConvolution>(new ImageConvolution(sizes));
}

size_t ImageConvolution::scratch_bytes(int num_threads) const {
  const int64_t filters = (sizes_.taps() + 1) * sizes_.width(), rows = sizes_.s.kernel[1] * sizes_.row();
  return size_t(filters + num_threads * rows) * sizeof(float);
}

void ImageConvolution::forward(const float *data, const float *weight, const float *bias, float *result, void *scratch,
                               const Lane &lane) const {
  const ConvolutionSizes &s = sizes_.s;
  const int64_t width = sizes_.width();
  float *const shifts = static_cast<float *>(scratch), *const filters = shifts + width;
  float *const rows = filters + sizes_.taps() * width;
  std::memset(scratch, 0, size_t((sizes_.taps() + 1) * width) * sizeof(float));
  for (int64_t o = 0; o < s.out_channels; ++o) {
    if (bias) shifts[o] = bias[o];
    for (int64_t t = 0; t < sizes_.taps(); ++t) {
      const int64_t y = t / s.kernel[2], x = t % s.kernel[2];
      filters[t * width + o] = weight[o * s.weight_out_step + y * s.weight_step[1] + x * s.weight_step[2]];
    }
  }
  parallel_ranges(lane, s.batch * s.out[1], 4, [&](int64_t range, int64_t begin, int64_t end) {
    compute_rows(sizes_, data, filters, shifts, begin, end, rows + range * s.kernel[1] * sizes_.row(), result);
  });
}

}  // namespace cohort
