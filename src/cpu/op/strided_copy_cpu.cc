// SPDX-License-Identifier: Apache-2.0
#include "kernels/strided_copy.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/copy_line.hpp"
#include "cpu/parallel.hpp"
#include "kernels/backend.hpp"

namespace cohort {
namespace {

template <typename T>
constexpr int64_t kTile = sizeof(T) < 8 ? 64 : 32;

// to[r * to_step + c] = from[c * from_step + r]: reads and writes whole rows of both, however far they are apart.
template <typename T>
void turn_tile(const T *from, int64_t from_step, T *to, int64_t to_step, int64_t rows, int64_t columns) {
  T tile[kTile<T> * kTile<T>];
  int64_t c = 0;
  if constexpr (sizeof(T) == 4) {
    using Four [[gnu::vector_size(16)]] = T;
    for (; c + 4 <= columns; c += 4) {
      const T *const x = from + c * from_step;
      int64_t r = 0;
      for (; r + 4 <= rows; r += 4) {
        Four line[4];
        for (int64_t i = 0; i < 4; ++i) std::memcpy(&line[i], x + i * from_step + r, 16);
        const Four low = __builtin_shufflevector(line[0], line[1], 0, 4, 1, 5),
                   high = __builtin_shufflevector(line[0], line[1], 2, 6, 3, 7),
                   next_low = __builtin_shufflevector(line[2], line[3], 0, 4, 1, 5),
                   next_high = __builtin_shufflevector(line[2], line[3], 2, 6, 3, 7);
        const Four transposed[4] = {
            __builtin_shufflevector(low, next_low, 0, 1, 4, 5), __builtin_shufflevector(low, next_low, 2, 3, 6, 7),
            __builtin_shufflevector(high, next_high, 0, 1, 4, 5), __builtin_shufflevector(high, next_high, 2, 3, 6, 7)};
        for (int64_t i = 0; i < 4; ++i) std::memcpy(tile + (r + i) * kTile<T> + c, &transposed[i], 16);
      }
      for (; r < rows; ++r) {
        for (int64_t i = 0; i < 4; ++i) tile[r * kTile<T> + c + i] = x[i * from_step + r];
      }
    }
  }
  for (; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) tile[r * kTile<T> + c] = from[c * from_step + r];
  }
  for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_step, tile + r * kTile<T>, size_t(columns) * sizeof(T));
}

constexpr int64_t kGrain = 16384;  // elements
constexpr int64_t kGrainBytes = 262144;

// to[i * to_step] = from[i * from_step]; common steps have vectorised loops.
template <typename T>
void copy_line(const T *from, int64_t from_step, T *to, int64_t to_step, int64_t count) {
  if (to_step != 1) {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  } else if (from_step == 2) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
  } else if (from_step == -1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * from_step];
  }
}

}  // namespace

template <typename T>
void StridedCopy::run_as(const T *from, T *to, const Lane &lane) const {
  if (num_outer_ == 0 || row_.length == 0 || inner_.length == 0) return;
  const bool dense = inner_.from == 1 && inner_.to == 1;
  const auto copy_dense = copy_line_of(size_t(inner_.length) * sizeof(T));
  const int64_t tile = dense ? 1 : kTile<T>, row_tiles = (row_.length + tile - 1) / tile;
  const int64_t grain = std::max<int64_t>(1, kGrain / (std::min(tile, row_.length) * inner_.length));
  parallel_for(lane, num_outer_ * row_tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t rest = unit / row_tiles;
      const int64_t first = unit % row_tiles * tile, last = std::min(first + tile, row_.length);
      const T *x = from + first * row_.from;
      T *y = to + first * row_.to;
      for (size_t i = outer_.size(); i-- > 0;) {
        const int64_t index = rest % outer_[i].length;
        rest /= outer_[i].length;
        x += index * outer_[i].from;
        y += index * outer_[i].to;
      }
      if (dense) {
        copy_dense(x, y, size_t(inner_.length) * sizeof(T));
        continue;
      }
      if (row_.from == 1 && inner_.to == 1 && inner_.from != 0) {
        for (int64_t c = 0; c < inner_.length; c += kTile<T>) {
          turn_tile(x + c * inner_.from, inner_.from, y + c, row_.to, last - first,
                    std::min(kTile<T>, inner_.length - c));
        }
        continue;
      }
      for (int64_t r = 0; r < last - first; ++r)
        copy_line(x + r * row_.from, inner_.from, y + r * row_.to, inner_.to, inner_.length);
    }
  });
}

void StridedCopy::run(const void *from, void *to, const Lane &lane) const {
  switch (element_bytes_) {
    case 1:
      return run_as(static_cast<const uint8_t *>(from), static_cast<uint8_t *>(to), lane);
    case 2:
      return run_as(static_cast<const uint16_t *>(from), static_cast<uint16_t *>(to), lane);
    case 4:
      return run_as(static_cast<const uint32_t *>(from), static_cast<uint32_t *>(to), lane);
    default:
      return run_as(static_cast<const uint64_t *>(from), static_cast<uint64_t *>(to), lane);
  }
}

void StridedCopy::fill(const void *value, void *to, const Lane &lane) const {
  StridedCopy one = *this;
  for (Axis &axis : one.outer_) axis.from = 0;
  one.row_.from = one.inner_.from = 0;
  one.run(value, to, lane);
}

void copy_bytes(const Lane &lane, void *to, const void *from, size_t bytes) {
  if (to == from) return;
  parallel_for(lane, int64_t(bytes), kGrainBytes, [=](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin, size_t(end - begin));
  });
}

void zero_bytes(const Lane &lane, void *to, size_t bytes) {
  parallel_for(lane, int64_t(bytes), kGrainBytes, [=](int64_t begin, int64_t end) {
    std::memset(static_cast<char *>(to) + begin, 0, size_t(end - begin));
  });
}

void read_back(const Lane &, void *to, const void *from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void write_through(const Lane &lane, void *to, const void *from, size_t bytes) { read_back(lane, to, from, bytes); }

class CallerLane::Own {};
CallerLane::CallerLane(const Context &, bool) {}
CallerLane::~CallerLane() = default;
void CallerLane::call(const Lane &given, void (*fn)(const void *, const Lane &), const void *own) const {
  fn(own, given);
}

}  // namespace cohort
