// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/softmax_rows.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/simd.hpp"

namespace cohort {
namespace {

constexpr int64_t kShared = 256;   // elements of short rows whose exponentials are taken at once
constexpr int64_t kColumns = 256;  // of a slab, at once

// Partial results, joined in order, whatever the instruction set: several registers of long rows, one of short ones.
constexpr int64_t kLong = 512;

template <int kLanes, typename C, typename Join>
C joined(const C *x, int64_t count, C result, Join &&join) {
  int64_t i = 0;
  if (count >= kLanes) {
    C partial[kLanes];
    for (int k = 0; k < kLanes; ++k) partial[k] = x[k];
    for (i = kLanes; i + kLanes <= count; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) partial[k] = join(partial[k], x[i + k]);
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int k = 0; k < width; ++k) partial[k] = join(partial[k], partial[k + width]);
    }
    result = partial[0];
  }
  for (; i < count; ++i) result = join(result, x[i]);
  return result;
}

template <typename C>
struct TopBody {
  static C run(const C *x, int64_t count) {
    const auto larger = [](C top, C value) { return value > top ? value : top; };
    return count < kLong ? joined<16>(x, count, x[0], larger) : joined<64>(x, count, x[0], larger);
  }
};

template <typename C>
struct SumBody {
  static C run(const C *x, int64_t count) {
    const auto add = [](C sum, C value) { return sum + value; };
    return count < kLong ? joined<16>(x, count, C(0), add) : joined<64>(x, count, C(0), add);
  }
};

// y = y / sum(y).
template <typename C>
struct NormBody {
  static void run(C *y, int64_t count) {
    const C scale = C(1) / SumBody<C>::run(y, count);
    for (int64_t j = 0; j < count; ++j) y[j] *= scale;
  }
};

template <typename Body, typename C>
auto version() {
  if constexpr (std::is_same_v<C, float>) return best_version<Body>();
  return &Body::run;
}

}  // namespace

template <typename C>
SoftmaxRows<C>::SoftmaxRows()
    : exp_(pointwise_loop<C>(PointwiseCode::kExp)),
      exp_less_(pointwise_loop<C>(PointwiseCode::kExpLessScalar)),
      top_(version<TopBody<C>, C>()),
      norm_(version<NormBody<C>, C>()),
      sum_(version<SumBody<C>, C>()) {}

// Short rows share one call of the exponential.
template <typename C>
void SoftmaxRows<C>::rows(const C *x, C *y, int64_t count, int64_t cols) const {
  if (cols == 0) return;
  const int64_t together = std::max<int64_t>(1, kShared / cols);
  for (int64_t first = 0; first < count; first += together) {
    const int64_t last = std::min(first + together, count);
    C *const block = y + first * cols;
    for (int64_t row = first; row < last; ++row) {
      const C *const from = x + row * cols;
      C *const to = y + row * cols;
      const C top = top_(from, cols);
      if (together == 1) {
        exp_less_(from, nullptr, nullptr, top, C(0), to, cols);
      } else {
        for (int64_t i = 0; i < cols; ++i) to[i] = from[i] - top;
      }
    }
    if (together > 1) exp_(block, nullptr, nullptr, C(0), C(0), block, (last - first) * cols);
    for (int64_t row = first; row < last; ++row) norm_(y + row * cols, cols);
  }
}

template <typename C>
void SoftmaxRows<C>::log_rows(const C *x, C *y, int64_t count, int64_t cols) const {
  C block[kPointwiseBlock];
  for (int64_t row = 0; row < count; ++row, x += cols, y += cols) {
    const C top = cols > 0 ? top_(x, cols) : C(0);
    C sum = 0;
    for (int64_t first = 0; first < cols; first += kPointwiseBlock) {
      const int64_t width = std::min(kPointwiseBlock, cols - first);
      exp_less_(x + first, nullptr, nullptr, top, C(0), block, width);
      sum += sum_(block, width);
    }
    const C shift = top + std::log(sum);
    for (int64_t i = 0; i < cols; ++i) y[i] = x[i] - shift;
  }
}

template <typename C>
void SoftmaxRows<C>::slab(const C *x, C *y, int64_t cols, int64_t inner) const {
  C top[kColumns], sum[kColumns];
  for (int64_t first = 0; first < inner; first += kColumns) {
    const int64_t width = std::min(kColumns, inner - first);
    std::copy(x + first, x + first + width, top);
    for (int64_t c = 1; c < cols; ++c) {
      const C *const from = x + c * inner + first;
      for (int64_t i = 0; i < width; ++i) top[i] = from[i] > top[i] ? from[i] : top[i];
    }
    std::fill(sum, sum + width, C(0));
    for (int64_t c = 0; c < cols; ++c) {
      const C *const from = x + c * inner + first;
      C *const to = y + c * inner + first;
      for (int64_t i = 0; i < width; ++i) to[i] = from[i] - top[i];
      exp_(to, nullptr, nullptr, C(0), C(0), to, width);
      for (int64_t i = 0; i < width; ++i) sum[i] += to[i];
    }
    for (int64_t i = 0; i < width; ++i) sum[i] = C(1) / sum[i];
    for (int64_t c = 0; c < cols; ++c) {
      C *const to = y + c * inner + first;
      for (int64_t i = 0; i < width; ++i) to[i] *= sum[i];
    }
  }
}

template class SoftmaxRows<float>;
template class SoftmaxRows<double>;

}  // namespace cohort
