// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/softmax_rows.hpp"

#include <algorithm>

namespace cohort {
namespace {

constexpr int64_t kBlock = 1024;   // elements whose exponentials are taken at once
constexpr int64_t kColumns = 256;  // of a slab, at once

template <typename C>
C max_of(const C *x, int64_t count) {
  C top = x[0];
  for (int64_t i = 1; i < count; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

// Four partial sums in a fixed order.
template <typename C>
C sum_of(const C *x, int64_t count) {
  C partial[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int k = 0; k < 4; ++k) partial[k] += x[i + k];
  }
  C sum = (partial[0] + partial[1]) + (partial[2] + partial[3]);
  for (; i < count; ++i) sum += x[i];
  return sum;
}

}  // namespace

// Short rows share one call of the exponential.
template <typename C>
void SoftmaxRows<C>::rows(const C *x, C *y, int64_t count, int64_t cols) const {
  if (cols == 0) return;
  const int64_t together = std::max<int64_t>(1, kBlock / cols);
  for (int64_t first = 0; first < count; first += together) {
    const int64_t last = std::min(first + together, count);
    for (int64_t row = first; row < last; ++row) {
      const C *const from = x + row * cols;
      C *const to = y + row * cols;
      const C top = max_of(from, cols);
      for (int64_t i = 0; i < cols; ++i) to[i] = from[i] - top;
    }
    C *const block = y + first * cols;
    exp_(block, nullptr, nullptr, C(0), C(0), block, (last - first) * cols);
    for (int64_t row = first; row < last; ++row) {
      C *const to = y + row * cols;
      const C scale = C(1) / sum_of(to, cols);
      for (int64_t i = 0; i < cols; ++i) to[i] *= scale;
    }
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
