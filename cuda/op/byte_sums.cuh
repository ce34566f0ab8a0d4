// SPDX-License-Identifier: Apache-2.0
// Sums of products of bytes, whole numbers modulo 2^32: those of a convolution, or of a fully connected layer, which is
// one of images of one place. What they become says who asks for them.
#pragma once

#include <optional>

#include "cuda/op/columns.cuh"
#include "cuda/op/matrix_product.hpp"
#include "cuda/op/rows.cuh"

namespace cohort {
namespace columns {

// What the sum of each channel begins with: start(channel), and with `shift`, shift times the sum of the filter.
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

// One thread gives one sum [channel][length] of places away. Neighbours in the result are neighbours.
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

// One thread adds up one element of the result.
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

// Columns (columns.cuh) of a stretch of places are gathered into scratch memory, and filters multiplied with them:
// int8 both, for uint8 loses 128, which each sum begins with instead. Where a group has few channels, or an array is
// too large for columns, each element of the result is added up by a thread of its own.
class ByteSums {
 public:
  // data: int8 or uint8. Scratch memory is booked behind *scratch_bytes.
  ByteSums(const ConvolutionSizes &sizes, Dtype data, size_t *scratch_bytes);

  // Calls finish(channel, where the element lies, its sum) for each element of the result; the sum has start(channel)
  // in it.
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
               columns::FinishSums<Finish>{columns::Side(s_, false), columns::Divisor(count),
                                           columns::Divisor(channels), sums, starts, each_, first / places,
                                           first % places, s_.out_channel_step == 1, finish});
    }
  }

 private:
  // Columns are of int8: of uint8 data less 128.
  bool shifts() const { return dtype_ == Dtype::kUint8 && product_; }
  const int8_t *arrange(const Lane &lane, const int8_t *filters, void *scratch) const;
  const int32_t *multiply(const Lane &lane, const uint8_t *data, const int8_t *rows, int64_t first, int64_t count,
                          void *scratch) const;

  ConvolutionSizes s_;
  Dtype dtype_;
  int64_t depth_ = 0, each_ = 0;          // of columns; places at a time, and in a row of sums
  std::optional<MatrixProduct> product_;  // none: without columns
  size_t starts_ = 0, rows_ = 0, columns_ = 0, sums_ = 0, workspace_ = 0;
};

// A fully connected layer as a convolution.
ConvolutionSizes sizes_of_layer(int64_t rows, int64_t units, int64_t features);

}  // namespace cohort
