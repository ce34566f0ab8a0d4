// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/byte_sums.cuh"

#include "kernels/scratch_layout.hpp"

namespace cohort {
namespace {

using namespace columns;
using convolution::volume;

constexpr int64_t kChunkBytes = 32 << 20;   // of columns and sums at a time: they stay in the L2 cache
constexpr int64_t kMostElements = 1 << 30;  // indices are of 32 bits within a sample, the filters, a stretch
constexpr int64_t kNarrow = 8;              // channels of a group for which a product is mostly empty
constexpr int64_t kVector = 16;

int64_t cut(int64_t count, int64_t into) { return (count + into - 1) / into; }
int64_t round_up(int64_t count, int64_t to) { return cut(count, to) * to; }

// Whether channels come last in data and filters; for images of one place both layouts are the same.
bool is_last(const ConvolutionSizes &s) { return s.in_channel_step == 1 && s.weight_in_step == 1; }

// Columns [group][place][depth], one vector per thread. They are 0 outside the image and behind the last place.
struct GatherBytes {
  Side from, to;
  ColumnWindow window;
  const uint8_t *image;
  uint8_t *columns;
  Divisor length, vectors, inner;  // inner: what is next to each other in the depth, channels or taps
  int64_t depth, first, count, flip, last, whole;

  __device__ void operator()(int64_t unit) const {
    auto rest = uint32_t(unit);
    const uint32_t digit = last ? vectors.split(&rest) : length.split(&rest);
    const uint32_t other = last ? length.split(&rest) : vectors.split(&rest);
    const uint32_t along = last ? other : digit, group = rest;
    uint32_t outer = (last ? digit : other) * kVector;
    uint8_t *const column = columns + (int64_t(group) * length.by + along) * depth + outer;
    const bool is_place = along < count;
    const WindowOrigin origin(to, window, uint32_t(first) + (is_place ? along : 0));
    const uint8_t *const sample = image + origin.sample * from.batch_step + group * from.channels * from.channel_step;
    const uint32_t inside = inner.split(&outer);
    uint32_t tap = last ? outer : inside;
    int64_t channel = last ? inside : outer;
    auto k = int32_t(window.row.split(&tap)), j = int32_t(window.lines.split(&tap)), i = int32_t(tap);
    const auto find = [&](int64_t *at) {
      const int32_t x = origin.at[0] + i * window.step[0], y = origin.at[1] + j * window.step[1],
                    z = origin.at[2] + k * window.step[2];
      const bool inside = is_place && channel < from.channels && i < window.kernel[0] &&
                          uint32_t(x) < uint32_t(from.lengths[0]) && uint32_t(y) < uint32_t(from.lengths[1]) &&
                          uint32_t(z) < uint32_t(from.lengths[2]);
      if (inside) {
        *at = channel * from.channel_step + int64_t((x * from.lengths[1] + y) * from.lengths[2] + z) * from.place_step;
      }
      return inside;
    };
    Vector<uint8_t> bytes{};
    int64_t at = 0;
    if (whole) {  // a vector is of one tap
      if (find(&at)) bytes = load_vector(sample + at);
      for (uint8_t &byte : bytes.at) byte = uint8_t(byte ^ flip);
      store_vector(column, bytes);
      return;
    }
    for (uint8_t &byte : bytes.at) {
      byte = uint8_t((find(&at) ? sample[at] : 0) ^ flip);
      if (last) {
        if (++channel < from.channels) continue;
        channel = 0;
      }
      if (++k < window.kernel[2]) continue;
      k = 0;
      if (++j < window.kernel[1]) continue;
      j = 0;
      if (++i < window.kernel[0] || last) continue;
      i = 0;
      ++channel;
    }
    store_vector(column, bytes);
  }
};

// Rows padded with zeros to whole vectors.
struct FillRows {
  const int8_t *from;
  int8_t *to;
  Divisor depth;
  int64_t filled;
  __device__ void operator()(int64_t i) const {
    auto row = uint32_t(i);
    const uint32_t d = depth.split(&row);
    to[i] = d < filled ? from[row * filled + d] : int8_t(0);
  }
};

// Whether 32-bit indices suffice, and the product is not empty.
bool takes_columns(const ConvolutionSizes &s, int64_t depth) {
  if (std::min({s.batch, depth, s.out_channels, volume(s.out)}) == 0) return false;
  if (s.groups > 1 && std::min(s.in_channels, s.out_channels) < kNarrow) return false;
  const auto fits = [](std::initializer_list<int64_t> factors) {
    double product = 1;
    for (const int64_t factor : factors) product *= double(factor);
    return product <= double(kMostElements);
  };
  for (size_t a = 0; a < 3; ++a) {
    if (!fits({s.in[a] + 2 * s.pad[a] + s.kernel[a] * s.dilate[a]})) return false;
  }
  return fits({s.groups, s.in_channels, volume(s.in)}) && fits({s.groups, s.out_channels, volume(s.out)}) &&
         fits({s.groups, s.out_channels, depth}) && fits({kVector, s.groups, depth + 4 * s.out_channels});
}

}  // namespace

ConvolutionSizes sizes_of_layer(int64_t rows, int64_t units, int64_t features) {
  return convolution_sizes({rows, features, 1}, {units, features, 1}, {rows, units, 1}, {1}, {1}, {0}, 1, false);
}

ByteSums::ByteSums(const ConvolutionSizes &sizes, Dtype data, size_t *scratch_bytes) : s_(sizes), dtype_(data) {
  const int64_t channels = s_.groups * s_.out_channels, filled = s_.in_channels * volume(s_.kernel);
  starts_ = book(*scratch_bytes, size_t(channels) * sizeof(int32_t));
  depth_ = round_up(filled, kVector);
  if (!takes_columns(s_, depth_)) return;
  const int64_t total = s_.batch * volume(s_.out);
  const int64_t most = std::max<int64_t>(kChunkBytes / (s_.groups * depth_ + 4 * channels), kVector);
  each_ = round_up(cut(total, cut(total, most)), kVector);
  product_.emplace(ProductTypes(Dtype::kInt8, Dtype::kInt32),
                   ProductExtent{s_.groups, s_.out_channels, each_, depth_, false, true});
  if (depth_ != filled) rows_ = book(*scratch_bytes, size_t(channels * depth_));
  columns_ = book(*scratch_bytes, size_t(s_.groups * each_ * depth_));
  sums_ = book(*scratch_bytes, size_t(channels * each_) * sizeof(int32_t));
  workspace_ = book(*scratch_bytes, product_->scratch_bytes());
}

const int8_t *ByteSums::arrange(const Lane &lane, const int8_t *filters, void *scratch) const {
  const int64_t filled = s_.in_channels * volume(s_.kernel);
  if (depth_ == filled) return filters;
  auto *const rows = static_cast<int8_t *>(scratch) + rows_;
  for_each(lane, s_.groups * s_.out_channels * depth_, FillRows{filters, rows, Divisor(depth_), filled});
  return rows;
}

const int32_t *ByteSums::multiply(const Lane &lane, const uint8_t *data, const int8_t *rows, int64_t first,
                                  int64_t count, void *scratch) const {
  char *const room = static_cast<char *>(scratch);
  auto *const columns = reinterpret_cast<uint8_t *>(room + columns_);
  auto *const sums = reinterpret_cast<int32_t *>(room + sums_);
  const int64_t places = volume(s_.out), vectors = depth_ / kVector, last = is_last(s_);
  const uint8_t *const image = data + first / places * s_.in_batch_step;
  const int64_t whole = last && s_.in_channels % kVector == 0 && can_be_vectors({image});
  for_each(lane, s_.groups * each_ * vectors,
           GatherBytes{Side(s_, true), Side(s_, false), ColumnWindow(s_, false), image, columns, Divisor(each_),
                       Divisor(vectors), Divisor(last ? s_.in_channels : volume(s_.kernel)), depth_, first % places,
                       count, shifts() ? int64_t(128) : int64_t(0), last, whole});
  product_->run(lane, rows, columns, sums, nullptr, room + workspace_);
  return sums;
}

}  // namespace cohort
