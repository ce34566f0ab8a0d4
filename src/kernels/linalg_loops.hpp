// SPDX-License-Identifier: Apache-2.0
// What kernels of linear algebra share: batches of matrices, triangles and elimination. C is float or double; matrices
// are row-major and dense.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/shape.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace linalg {

// Matrices in the last two axes.
struct Batch {
  int64_t count, rows, cols;

  explicit Batch(const Shape &s) : count(s.size(0, s.rank() - 2)), rows(s[s.rank() - 2]), cols(s[s.rank() - 1]) {}
  COHORT_HOST_DEVICE int64_t area() const { return rows * cols; }
};

// The same as of kernels/compute.hpp, by those who work on a matrix together (each_together()).
template <typename Fn>
COHORT_KERNEL_CODE void share_each(int64_t count, const Fn &fn) {
  share_out(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i);
  });
}
template <typename C>
COHORT_KERNEL_CODE void fill(C *to, int64_t count, C value) {
  share_out(count, [&](int64_t begin, int64_t end) { fill_elements(to + begin, end - begin, value); });
}
template <typename C>
COHORT_KERNEL_CODE void copy(const C *from, int64_t count, C *to) {
  share_out(count, [&](int64_t begin, int64_t end) { copy_elements(from + begin, end - begin, to + begin); });
}
template <typename C>
COHORT_KERNEL_CODE void swap(C *a, C *b, int64_t count) {
  share_out(count, [&](int64_t begin, int64_t end) { swap_elements(a + begin, b + begin, end - begin); });
}
template <typename C>
COHORT_KERNEL_CODE void set_identity(int64_t n, C *to) {
  fill(to, n * n, C(0));
  share_each(n, [&](int64_t i) { to[i * n + i] = 1; });
}

// b = op(a)^-1 b with a (rows, rows), or b op(a)^-1 with a (cols, cols): op transposes if asked to, `lower` says which
// triangle of a counts.
template <typename C>
COHORT_KERNEL_CODE void solve_triangle(bool right, bool lower, bool transpose, int64_t rows, int64_t cols, const C *a,
                                       C *b) {
  const int64_t n = right ? cols : rows;
  const auto at = [=](int64_t i, int64_t k) { return transpose ? a[k * n + i] : a[i * n + k]; };
  // From the left, unknown i depends on those before it in a lower triangle; from the right, on those behind it.
  const bool forward = (lower != transpose) != right;
  // Rows of b do not depend on each other if a is on the right, columns if it is on the left.
  share_out(right ? rows : cols, [&](int64_t first, int64_t last) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = forward ? step : n - 1 - step;
      const int64_t begin = forward ? 0 : i + 1, end = forward ? i : n;
      if (right) {
        // An unknown is taken out of those that depend on it, or they are taken out of it: along a row of a.
        for (int64_t r = first; r < last; ++r) {
          C *const row = b + r * cols;
          C value = row[i];
          for (int64_t k = begin; transpose && k < end; ++k) value -= row[k] * at(k, i);
          value = row[i] = value / at(i, i);
          const int64_t behind = forward ? n : i;
          for (int64_t k = forward ? i + 1 : 0; !transpose && k < behind; ++k) row[k] -= value * a[i * n + k];
        }
      } else {
        C *const row = b + i * cols;
        int64_t k = begin;
        for (; k + 4 <= end; k += 4) {
          const C f[4] = {at(i, k), at(i, k + 1), at(i, k + 2), at(i, k + 3)};
          const C *const other = b + k * cols;
          for (int64_t j = first; j < last; ++j) {
            row[j] = row[j] - f[0] * other[j] - f[1] * other[cols + j] - f[2] * other[2 * cols + j] -
                     f[3] * other[3 * cols + j];
          }
        }
        for (; k < end; ++k) {
          for (int64_t j = first; j < last; ++j) row[j] -= at(i, k) * b[k * cols + j];
        }
        for (int64_t j = first; j < last; ++j) row[j] /= at(i, i);
      }
    }
  });
}

// to = a triangle of a, zeros elsewhere. to may be a.
template <typename C>
COHORT_KERNEL_CODE void copy_triangle(bool lower, int64_t n, const C *a, C *to) {
  share_out(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = begin; j < end; ++j) to[i * n + j] = (lower ? j <= i : j >= i) ? a[i * n + j] : C(0);
    }
  });
}

template <typename C>
COHORT_KERNEL_CODE void scale(C factor, int64_t count, C *x) {
  if (factor == 1) return;
  share_each(count, [&](int64_t i) { x[i] *= factor; });
}

// Reduces a (n, n) to an upper triangle with partial pivoting, and does to b (n, n), if given, what it does to a. The
// sign of the permutation; 0 if a column has no pivot.
template <typename C>
COHORT_KERNEL_CODE int eliminate(int64_t n, C *a, C *b) {
  int sign = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (a[pivot * n + k] == 0) return 0;
    meet();  // all have seen the pivot where it was
    if (pivot != k) {
      sign = -sign;
      swap(a + k * n, a + pivot * n, n);
      if (b) swap(b + k * n, b + pivot * n, n);
    }
    share_out(n - k - 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = k + 1 + begin; i < k + 1 + end; ++i) {
        const C factor = a[i * n + k] / a[k * n + k];
        for (int64_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
        for (int64_t j = 0; b && j < n; ++j) b[i * n + j] -= factor * b[k * n + j];
      }
    });
  }
  return sign;
}

// to = a^-1, with a spoilt. The sign of the permutation of elimination, after which a holds the triangle; 0, and `to`
// is undefined, if a is singular.
template <typename C>
COHORT_KERNEL_CODE int invert(int64_t n, C *a, C *to) {
  set_identity(n, to);
  const int sign = eliminate(n, a, to);
  if (sign != 0) solve_triangle(false, false, false, n, n, a, to);
  return sign;
}

}  // namespace linalg
}  // namespace cohort
