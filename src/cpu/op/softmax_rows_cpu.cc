// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/softmax_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "cpu/op/lane_reduce.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace {

constexpr int64_t kShared = kPointwiseBlock;  // elements of short rows that are computed together
constexpr int64_t kColumns = 256;             // columns of a slab that are computed together

template <typename C>
struct TopBody {
  static C run(const C *x, int64_t count) {
    return count < kLongRow ? joined<16>(x, count, x[0], JoinLarger()) : joined<64>(x, count, x[0], JoinLarger());
  }
};

template <typename C>
struct SumBody {
  static C run(const C *x, int64_t count) {
    return count < kLongRow ? joined<16>(x, count, C(0), JoinSum()) : joined<64>(x, count, C(0), JoinSum());
  }
};

// y = x - max(x), for each row; `tops` gets the largest elements, if not null.
template <typename C>
struct LessTopBody {
  static void run(const C *x, C *y, C *tops, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
      const C top = TopBody<C>::run(x, cols);
      if (tops) tops[row] = top;
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t j = 0; j < cols; ++j) y[j] = x[j] - top;
    }
  }
};

// y = y / sum(y), for each row.
template <typename C>
struct NormBody {
  static void run(C *y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row, y += cols) {
      const C scale = C(1) / SumBody<C>::run(y, cols);
      for (int64_t j = 0; j < cols; ++j) y[j] *= scale;
    }
  }
};

// y = x - tops - log(sum(powers)), for each row.
template <typename C>
struct LogBody {
  static void run(const C *x, const C *tops, const C *powers, C *y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row, x += cols, powers += cols, y += cols) {
      const C shift = tops[row] + std::log(SumBody<C>::run(powers, cols));
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t j = 0; j < cols; ++j) y[j] = x[j] - shift;
    }
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
      sum_(version<SumBody<C>, C>()),
      less_top_(version<LessTopBody<C>, C>()),
      norm_(version<NormBody<C>, C>()),
      log_(version<LogBody<C>, C>()) {}

// Short rows share one call of each step.
template <typename C>
void SoftmaxRows<C>::rows(const C *x, C *y, int64_t count, int64_t cols) const {
  if (cols == 0) return;
  const int64_t together = std::max<int64_t>(1, kShared / cols);
  static_assert(kShared / 2 >= kShortestUsualRow);
  for (int64_t row = 0; row < count; row += together, x += together * cols, y += together * cols) {
    const int64_t rows = std::min(together, count - row);
    if (together == 1) {
      C top;
      if constexpr (std::is_same_v<C, float>) {
        if (usual_ && usual_(x, y, cols, &top)) continue;
        if (!usual_) top = top_(x, cols);
      } else {
        top = top_(x, cols);
      }
      exp_less_(x, nullptr, nullptr, top, C(0), y, cols);
    } else {
      less_top_(x, y, nullptr, rows, cols);
      exp_(y, nullptr, nullptr, C(0), C(0), y, rows * cols);
    }
    norm_(y, rows, cols);
  }
}

template <typename C>
void SoftmaxRows<C>::log_rows(const C *x, C *y, int64_t count, int64_t cols) const {
  C block[kPointwiseBlock], tops[kShared];
  const int64_t together = cols > 0 ? kShared / cols : 0;
  for (int64_t row = 0; row < count && together > 1; row += together, x += together * cols, y += together * cols) {
    const int64_t rows = std::min(together, count - row);
    less_top_(x, block, tops, rows, cols);
    exp_(block, nullptr, nullptr, C(0), C(0), block, rows * cols);
    log_(x, tops, block, y, rows, cols);
  }
  for (int64_t row = 0; row < count && together <= 1; ++row, x += cols, y += cols) {
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
