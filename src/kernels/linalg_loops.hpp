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

// Rows [row, row + kRows) of b, columns [first, last), each less factor(r, k) times row k for k in [begin, end), in
// their order.
template <int kRows, typename C, typename Factor>
COHORT_KERNEL_CODE void subtract_rows(C *b, int64_t cols, int64_t row, int64_t begin, int64_t end, int64_t first,
                                      int64_t last, const Factor &factor) {
  C *const to = b + row * cols;
  int64_t k = begin;
  for (; k + 4 <= end; k += 4) {
    C f[kRows][4];
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < 4; ++i) f[r][i] = factor(row + r, k + i);
    }
    const C *const from = b + k * cols;
    COHORT_VECTOR_LOOP
    for (int64_t j = first; j < last; ++j) {
      const C other[] = {from[j], from[cols + j], from[2 * cols + j], from[3 * cols + j]};
      for (int r = 0; r < kRows; ++r) {
        C *const x = to + r * cols + j;
        *x = *x - f[r][0] * other[0] - f[r][1] * other[1] - f[r][2] * other[2] - f[r][3] * other[3];
      }
    }
  }
  for (; k < end; ++k) {
    for (int r = 0; r < kRows; ++r) {
      const C f = factor(row + r, k);
      COHORT_VECTOR_LOOP
      for (int64_t j = first; j < last; ++j) to[r * cols + j] -= f * b[k * cols + j];
    }
  }
}

// b (n, cols) = op(a)^-1 b with a (n, n): op transposes if asked to, `lower` says which triangle of a counts. Several
// rows at a time, less those that are found, and then one after the other.
template <typename C>
COHORT_KERNEL_CODE void solve_triangle(bool lower, bool transpose, int64_t n, int64_t cols, const C *a, C *b) {
  constexpr int kTogether = 4;
  const auto at = [=](int64_t i, int64_t k) { return transpose ? a[k * n + i] : a[i * n + k]; };
  const bool forward = lower != transpose;  // a row depends on those before it, or on those behind it
  share_out(cols, [&](int64_t first, int64_t last) {
    for (int64_t done = 0; done < n; done += kTogether) {
      const int64_t count = n - done < kTogether ? n - done : kTogether;
      const int64_t top = forward ? done : n - done - count, bottom = top + count;
      const int64_t begin = forward ? 0 : bottom, end = forward ? top : n;
      if (count == kTogether) subtract_rows<kTogether>(b, cols, top, begin, end, first, last, at);
      for (int64_t step = 0; step < count; ++step) {
        const int64_t i = forward ? top + step : bottom - 1 - step;
        if (count < kTogether) subtract_rows<1>(b, cols, i, begin, end, first, last, at);
        subtract_rows<1>(b, cols, i, forward ? top : i + 1, forward ? i : bottom, first, last, at);
        const C diagonal = at(i, i);
        for (int64_t j = first; j < last; ++j) b[i * cols + j] /= diagonal;
      }
    }
  });
}

// to (cols, rows) = from^T; they do not overlap.
template <typename C>
COHORT_KERNEL_CODE void transpose(int64_t rows, int64_t cols, const C *from, C *to) {
  constexpr int64_t kTile = 16;
  share_out((rows + kTile - 1) / kTile, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kTile, last = first + kTile < rows ? first + kTile : rows;
      for (int64_t j = 0; j < cols; ++j) {
        for (int64_t i = first; i < last; ++i) to[j * rows + i] = from[i * cols + j];
      }
    }
  });
}
// x (n, n) = x^T.
template <typename C>
COHORT_KERNEL_CODE void transpose_square(int64_t n, C *x) {
  share_each(n, [&](int64_t i) {
    for (int64_t j = 0; j < i; ++j) swap_elements(x + i * n + j, x + j * n + i, 1);
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

// x *= factor. As BLAS: what is taken 0 times is not read, so that there 0 comes of what is infinite, too.
template <typename C>
COHORT_KERNEL_CODE void scale(C factor, int64_t count, C *x) {
  if (factor == 1) return;
  if (factor == 0) return fill(x, count, C(0));
  share_each(count, [&](int64_t i) { x[i] *= factor; });
}

constexpr int kPanel = 16;  // columns of elimination at a time, which lie together in `panel` (n, kPanel)

// Reduces the upper triangle of a (n, n) with partial pivoting, and does to b (n, n), if given, what it does to a. The
// sign of the permutation; 0 if a column has no pivot.
template <typename C>
COHORT_KERNEL_CODE int eliminate(int64_t n, C *a, C *b, C *panel) {
  int sign = 1;
  for (int64_t first = 0; first < n; first += kPanel) {
    const int64_t width = n - first < kPanel ? n - first : kPanel, behind = first + width;
    share_each(n - first, [&](int64_t i) {
      for (int64_t j = 0; j < kPanel; ++j) panel[i * kPanel + j] = j < width ? a[(first + i) * n + first + j] : C(0);
    });
    for (int64_t k = 0; k < width; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n - first; ++i) {
        if (std::abs(panel[i * kPanel + k]) > std::abs(panel[pivot * kPanel + k])) pivot = i;
      }
      if (panel[pivot * kPanel + k] == 0) return 0;
      meet();  // all have seen the pivot where it was
      if (pivot != k) {
        sign = -sign;
        swap(panel + k * kPanel, panel + pivot * kPanel, kPanel);
        swap(a + (first + k) * n + behind, a + (first + pivot) * n + behind, n - behind);
        if (b) swap(b + (first + k) * n, b + (first + pivot) * n, n);
      }
      share_out(n - first - k - 1, [&](int64_t begin, int64_t end) {
        C top[kPanel];  // zeros up to the pivot: rows of one length make whole vectors
        for (int64_t j = 0; j < kPanel; ++j) top[j] = j > k ? panel[k * kPanel + j] : C(0);
        for (int64_t i = k + 1 + begin; i < k + 1 + end; ++i) {
          C *const row = panel + i * kPanel;
          const C factor = row[k] / panel[k * kPanel + k];
          for (int64_t j = 0; j < kPanel; ++j) row[j] -= factor * top[j];
          row[k] = factor;
        }
      });
    }
    const auto at = [=](int64_t i, int64_t k) { return panel[(i - first) * kPanel + k - first]; };
    const auto follow = [&](C *x, int64_t from) {  // columns of x take the same steps
      share_out(n - from, [&](int64_t begin, int64_t end) {
        int64_t i = first + 1;
        for (; i < behind; ++i) subtract_rows<1>(x, n, i, first, i, from + begin, from + end, at);
        for (; i + 4 <= n; i += 4) subtract_rows<4>(x, n, i, first, behind, from + begin, from + end, at);
        for (; i < n; ++i) subtract_rows<1>(x, n, i, first, behind, from + begin, from + end, at);
      });
    };
    follow(a, behind);
    if (b) follow(b, 0);
    share_each(width, [&](int64_t i) {
      for (int64_t j = i; j < width; ++j) a[(first + i) * n + first + j] = panel[i * kPanel + j];
    });
  }
  return sign;
}

// to = a^-1, with a spoilt. The sign of the permutation of elimination, after which a holds the triangle; 0, and `to`
// is undefined, if a is singular.
template <typename C>
COHORT_KERNEL_CODE int invert(int64_t n, C *a, C *to, C *panel) {
  set_identity(n, to);
  const int sign = eliminate(n, a, to, panel);
  if (sign != 0) solve_triangle(false, false, n, n, a, to);
  return sign;
}

}  // namespace linalg
}  // namespace cohort
