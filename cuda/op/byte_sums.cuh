// SPDX-License-Identifier: Apache-2.0
// Sums of products of bytes, modulo 2^32, for a convolution or for a fully connected layer, which is a convolution of
// images of one place. The caller's functor converts the sums.
#pragma once

#include <optional>

#include "cuda/op/columns.cuh"
#include "cuda/op/matrix_product.hpp"
#include "cuda/op/rows.cuh"

namespace cohort {
namespace columns {

// The start value of each channel's sum: start(channel), plus `shift` times the sum of the filter.
template <typename Start>
struct StartSums {
  const int8_t *filters;
  int32_t *starts;
  int64_t depth, shift;
  Start start;
  __device__ void operator()(int64_t channel) const {
    const int8_t *const filter = filters + channel * depth;
    const auto sum = shift ? sum_along<uint32_t>(depth, [=](int64_t i) { return uint32_t(int32_t(filter[i])); }) : 0u;
    if (threadIdx.x == 0) starts[channel] = int32_t(uint32_t(start(channel)) + uint32_t(shift) * sum);
  }
};

// One thread converts one sum of [channel][length of places]. Neighbouring threads write neighbouring results.
template <typename Finish>
struct FinishSums {
  Side to;
  Divisor count, channels;
  const int32_t *sums, *starts;
  int64_t length, sample, first, last;
  Finish finish;
  __device__ void operator()(int64_t unit) const {
    auto rest = uint32_t(unit);
    const uint32_t digit = last ? channels.split(&rest) : count.split(&rest);
    const uint32_t channel = last ? digit : rest, along = last ? rest : digit;
    uint32_t own = uint32_t(first) + along;
    const uint32_t place = to.places.split(&own);
    const uint32_t sum = uint32_t(sums[channel * length + along]) + uint32_t(starts[channel]);
    finish(channel, (sample + own) * to.batch_step + channel * to.channel_step + place * to.place_step, int32_t(sum));
  }
};

// One thread sums one element of the result.
template <typename Finish>
struct SumOfPlace {
  ConvolutionSizes s;
  const uint8_t *data;
  const int8_t *filters;
  const int32_t *starts;
  int64_t is_signed;
  Finish finish;
  __device__ void operator()(int64_t i) const {
    const int64_t places = convolution::volume(s.out), channels = s.groups * s.out_channels;
    const int64_t place = i % places, channel = i / places % channels, sample = i / places / channels;
    const int sign = is_signed ? 128 : 0;
    const uint32_t sum = convolution::result_at(
        s, sample, channel, place, uint32_t(starts[channel]),
        [=](int64_t at) { return uint32_t((data[at] ^ sign) - sign); },
        [=](int64_t at) { return uint32_t(int32_t(filters[at])); });
    finish(channel, sample * s.out_batch_step + channel * s.out_channel_step + place * s.out_step[2], int32_t(sum));
  }
};

}  // namespace columns

// Gathers columns (columns.cuh) of one chunk of places into scratch memory, and multiplies the filters with them. Both
// are int8: from uint8 data 128 is subtracted, and the start value of each sum makes up for it. If a group has few
// channels, or an array is too large for columns, one thread sums each element of the result instead.
class ByteSums {
 public:
  // data: int8 or uint8. Adds its scratch memory to *scratch_bytes.
  ByteSums(const ConvolutionSizes &sizes, Dtype data, size_t *scratch_bytes);

  // Calls finish(channel, index of the element, sum) for each element of the result; the sum includes start(channel).
  template <typename Start, typename Finish>
  void run(const Lane &lane, const void *data, const void *filters, void *scratch, const Start &start,
           const Finish &finish) const {
    const int64_t channels = s_.groups * s_.out_channels, places = convolution::volume(s_.out);
    if (s_.batch * channels * places == 0) return;
    auto *const starts = reinterpret_cast<int32_t *>(static_cast<char *>(scratch) + starts_);
    const auto *const from = static_cast<const uint8_t *>(data);
    const auto *const weights = static_cast<const int8_t *>(filters);
    const int64_t own_depth = s_.in_channels * convolution::volume(s_.kernel);
    for_each_row(lane, channels,
                 columns::StartSums<Start>{weights, starts, own_depth, shifts() ? int64_t(128) : int64_t(0), start});
    if (!product_) {
      const int64_t is_signed = dtype_ == Dtype::kInt8;
      return for_each(lane, s_.batch * channels * places,
                      columns::SumOfPlace<Finish>{s_, from, weights, starts, is_signed, finish});
    }
    const int8_t *const rows = arrange(lane, weights, scratch);
    for (int64_t first = 0; first < s_.batch * places; first += each_) {
      const int64_t count = std::min(each_, s_.batch * places - first);
      const int32_t *const sums = multiply(lane, from, rows, first, count, scratch);
      for_each(lane, count * channels,
               columns::FinishSums<Finish>{columns::Side(s_, false), Divisor(count), Divisor(channels), sums, starts,
                                           each_, first / places, first % places, s_.out_channel_step == 1, finish});
    }
  }

 private:
  // Columns are int8: uint8 data minus 128.
  bool shifts() const { return dtype_ == Dtype::kUint8 && product_; }
  const int8_t *arrange(const Lane &lane, const int8_t *filters, void *scratch) const;
  const int32_t *multiply(const Lane &lane, const uint8_t *data, const int8_t *rows, int64_t first, int64_t count,
                          void *scratch) const;

  ConvolutionSizes s_;
  Dtype dtype_;
  int64_t depth_ = 0, each_ = 0;          // of columns; places per chunk, which is also the length of a row of sums
  std::optional<MatrixProduct> product_;  // empty: no columns are used
  size_t starts_ = 0, rows_ = 0, columns_ = 0, sums_ = 0, workspace_ = 0;
};

// A fully connected layer as a convolution.
ConvolutionSizes sizes_of_layer(int64_t rows, int64_t units, int64_t features);

}  // namespace cohort
