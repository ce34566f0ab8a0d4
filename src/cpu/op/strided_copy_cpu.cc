// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/strided_copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cpu/parallel.hpp"

namespace cohort {
namespace {

constexpr int64_t kTile = 32;
constexpr int64_t kGrain = 16384;  // elements

}  // namespace

StridedCopy::StridedCopy(std::vector<Axis> axes, size_t element_bytes) : element_bytes_(element_bytes) {
  // In the order of `to`, neighbours joined where one index could do for both.
  axes.erase(std::remove_if(axes.begin(), axes.end(), [](const Axis &a) { return a.length == 1; }), axes.end());
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis &a, const Axis &b) { return std::llabs(a.to) > std::llabs(b.to); });
  std::vector<Axis> joined;
  for (const Axis &axis : axes) {
    if (!joined.empty() && joined.back().from == axis.from * axis.length && joined.back().to == axis.to * axis.length) {
      joined.back() = {joined.back().length * axis.length, axis.from, axis.to};
    } else {
      joined.push_back(axis);
    }
  }
  if (!joined.empty()) {
    inner_ = joined.back();
    joined.pop_back();
  }
  // The axis along which `from` is dense goes with the one along which `to` is, in tiles that fit the cache.
  if (inner_.from != 1) {
    const auto dense = std::find_if(joined.begin(), joined.end(), [](const Axis &a) { return a.from == 1; });
    if (dense != joined.end()) {
      row_ = *dense;
      joined.erase(dense);
    }
  }
  if (row_.length == 1 && !joined.empty()) {
    row_ = joined.back();
    joined.pop_back();
  }
  outer_ = std::move(joined);
  for (const Axis &axis : outer_) num_outer_ *= axis.length;
}

template <typename T>
void StridedCopy::run_as(const T *from, T *to, const Lane &lane) const {
  if (num_outer_ == 0 || row_.length == 0 || inner_.length == 0) return;
  const bool dense = inner_.from == 1 && inner_.to == 1;
  const int64_t tile = dense ? 1 : kTile, row_tiles = (row_.length + tile - 1) / tile;
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
        std::memcpy(y, x, size_t(inner_.length) * sizeof(T));
        continue;
      }
      for (int64_t c0 = 0; c0 < inner_.length; c0 += kTile) {
        const int64_t c1 = std::min(c0 + kTile, inner_.length);
        for (int64_t r = 0; r < last - first; ++r) {
          const T *xr = x + r * row_.from;
          T *yr = y + r * row_.to;
          if (inner_.to == 1) {
            for (int64_t c = c0; c < c1; ++c) yr[c] = xr[c * inner_.from];
          } else {
            for (int64_t c = c0; c < c1; ++c) yr[c * inner_.to] = xr[c * inner_.from];
          }
        }
      }
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

std::vector<int64_t> dense_strides(const Shape &shape) {
  std::vector<int64_t> strides(size_t(shape.rank()), 1);
  for (int axis = shape.rank() - 1; axis-- > 0;) strides[size_t(axis)] = strides[size_t(axis) + 1] * shape[axis + 1];
  return strides;
}

}  // namespace cohort
