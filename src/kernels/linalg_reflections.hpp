// SPDX-License-Identifier: Apache-2.0
// Reflections H_i = I - tau_i v_i v_i^T, several at a time: H_0 H_1 ... = I - V^T T V with the v_i in the rows of V
// and an upper triangle T. Orthogonal factorizations consist of them. Executed by the threads of a block together
// (Backend::for_each_block()).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/linalg_loops.hpp"

namespace cohort {
namespace linalg {

constexpr int64_t kTogether = 16;  // reflections that are applied at a time

// Turns row (length) into a v, which is 1 at `one`, such that H makes all other elements of the row 0. Returns tau;
// *beta is what the row holds at `one` afterwards.
template <typename Backend, typename C>
COHORT_DEVICE C make_reflection(int64_t length, C *row, int64_t one, double *beta) {
  double alpha = double(row[one]), scale = 1;
  Backend::block_sync();  // all threads have read it
  share_each<Backend>(1, [&](int64_t) { row[one] = 0; });
  const auto others = [=] {
    return Backend::template block_sum<double>(length, [=](int64_t j) { return double(row[j]) * double(row[j]); });
  };
  double square = others(), all = square + alpha * alpha;
  if (!(all > 1e-280 && all < 1e280)) {  // its square would over- or underflow
    double top = std::fabs(alpha);
    for (int64_t j = 0; j < length; ++j) {
      const double size = std::fabs(double(row[j]));
      if (top < size) top = size;
    }
    if (top > 0 && std::isfinite(top)) {
      const int exponent = -std::ilogb(top);
      scale = std::ldexp(1.0, exponent < -1000 ? -1000 : exponent < 1000 ? exponent : 1000);
    }
    Backend::block_sync();
    share_each<Backend>(length, [&](int64_t j) { row[j] = C(double(row[j]) * scale); });
    alpha *= scale;
    square = others();
    all = square + alpha * alpha;
  }
  *beta = alpha / scale;
  const double left = -std::copysign(std::sqrt(all), alpha), divisor = alpha - left;
  if (square != 0) {
    *beta = left / scale;
    share_each<Backend>(length, [&](int64_t j) { row[j] = C(double(row[j]) / divisor); });
  }
  share_each<Backend>(1, [&](int64_t) { row[one] = 1; });
  return square != 0 ? C((left - alpha) / left) : C(0);
}

// Up to kTogether reflections, the rows of v (count, width).
template <typename Backend, typename C>
class Reflections {
 public:
  static int64_t room(int64_t rows) {
    return 2 * kTogether * (kTogether + rows);
  }  // scratch elements for apply() on so many rows
  COHORT_DEVICE Reflections(int64_t count, int64_t width, const C *v, int64_t v_step, const C *taus, C *room)
      : count_(count), width_(width), v_(v), step_(v_step), minus_t_(room), room_(room + kTogether * kTogether) {
    C *const products = room_;
    Backend::gemm(false, true, count, count, width, v, v_step, v, v_step, C(0), products, count);
    for (int64_t j = 0; j < count; ++j) {
      share_each<Backend>(count, [&](int64_t i) {
        C sum = i == j ? C(1) : C(0);
        for (int64_t k = i; k < j; ++k) sum += minus_t_[i * count + k] * products[k * count + j];
        minus_t_[i * count + j] = -taus[j] * sum;
      });
    }
  }
  // x (rows, width) = x H_0 H_1 ..., or x ... H_1 H_0
  COHORT_DEVICE void apply(bool last_first, int64_t rows, C *x, int64_t x_step) const {
    C *const along = room_, *const times_t = along + rows * kTogether;
    Backend::gemm(false, true, rows, count_, width_, x, x_step, v_, step_, C(0), along, count_);
    Backend::gemm(false, last_first, rows, count_, count_, along, count_, minus_t_, count_, C(0), times_t, count_);
    Backend::gemm(false, false, rows, width_, count_, times_t, count_, v_, step_, C(1), x, x_step);
  }

 private:
  const int64_t count_, width_;
  const C *const v_;
  const int64_t step_;
  C *const minus_t_, *const room_;
};

}  // namespace linalg
}  // namespace cohort
