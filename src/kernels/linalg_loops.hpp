// SPDX-License-Identifier: Apache-2.0
// Functions that kernels of linear algebra share: batches of matrices, triangles, elimination. C is float or double;
// matrices are row-major and dense.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/shape.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace linalg {

// A batch of matrices in the last two axes.
struct Batch {
  int64_t count, rows, cols;

  explicit Batch(const Shape &s) : count(s.size(0, s.rank() - 2)), rows(s[s.rank() - 2]), cols(s[s.rank() - 1]) {}
  COHORT_HOST_DEVICE int64_t area() const { return rows * cols; }
};

// Functions of kernels/compute.hpp, executed by the threads of a block together (Backend::for_each_block()).
template <typename Backend, typename Fn>
COHORT_DEVICE void share_each(int64_t count, const Fn &fn) {
  Backend::block_for(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i);
  });
}
template <typename Backend, typename C>
COHORT_DEVICE void fill(C *to, int64_t count, C value) {
  Backend::block_for(count, [&](int64_t begin, int64_t end) { fill_elements(to + begin, end - begin, value); });
}
template <typename Backend, typename C>
COHORT_DEVICE void copy(const C *from, int64_t count, C *to) {
  Backend::block_for(count, [&](int64_t begin, int64_t end) { copy_elements(from + begin, end - begin, to + begin); });
}
template <typename Backend, typename C>
COHORT_DEVICE void swap(C *a, C *b, int64_t count) {
  Backend::block_for(count, [&](int64_t begin, int64_t end) { swap_elements(a + begin, b + begin, end - begin); });
}
template <typename Backend, typename C>
COHORT_DEVICE void set_identity(int64_t n, C *to) {
  fill<Backend>(to, n * n, C(0));
  share_each<Backend>(n, [&](int64_t i) { to[i * n + i] = 1; });
}

// Subtracts factor(r, k) times row k of b, for k in [begin, end) in this order, from each of the rows [row, row +
// kRows) of b, in columns [first, last).
template <int kRows, typename C, typename Factor>
COHORT_DEVICE void subtract_rows(C *b, int64_t cols, int64_t row, int64_t begin, int64_t end, int64_t first,
                                 int64_t last, const Factor &factor) {
  C *const to = b + row * cols;
  int64_t k = begin;
  for (; k + 4 <= end; k += 4) {
    C f[kRows][4];
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < 4; ++i) f[r][i] = factor(row + r, k + i);
    }
    const C *const from = b + k * cols;
    COHORT_INDEPENDENT_ITERATIONS
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
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t j = first; j < last; ++j) to[r * cols + j] -= f * b[k * cols + j];
    }
  }
}

// b (n, cols) = op(a)^-1 b with a (n, n); op transposes if asked to, `lower` says which triangle of a is read.
// Several rows at a time: first the rows already solved are subtracted from them, then they are solved one after the
// other.
template <typename Backend, typename C>
COHORT_DEVICE void solve_triangle(bool lower, bool transpose, int64_t n, int64_t cols, const C *a, C *b) {
  constexpr int kTogether = 4;
  const auto at = [=](int64_t i, int64_t k) { return transpose ? a[k * n + i] : a[i * n + k]; };
  const bool forward = lower != transpose;  // rows depend on those before them, else on those behind them
  Backend::block_for(cols, [&](int64_t first, int64_t last) {
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

// to (cols, rows) = from^T; the two do not overlap.
template <typename Backend, typename C>
COHORT_DEVICE void transpose(int64_t rows, int64_t cols, const C *from, C *to) {
  constexpr int64_t kTile = 16;
  Backend::block_for((rows + kTile - 1) / kTile, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kTile, last = first + kTile < rows ? first + kTile : rows;
      for (int64_t j = 0; j < cols; ++j) {
        for (int64_t i = first; i < last; ++i) to[j * rows + i] = from[i * cols + j];
      }
    }
  });
}
// x (n, n) = x^T.
template <typename Backend, typename C>
COHORT_DEVICE void transpose_square(int64_t n, C *x) {
  share_each<Backend>(n, [&](int64_t i) {
    for (int64_t j = 0; j < i; ++j) swap_elements(x + i * n + j, x + j * n + i, 1);
  });
}

// The same for the upper triangle alone: below it, x is not read, and what it leaves is 0.
template <typename Backend, typename C>
COHORT_DEVICE void transpose_upper(int64_t n, C *x) {
  share_each<Backend>(n, [&](int64_t i) {
    for (int64_t j = 0; j < i; ++j) {
      x[i * n + j] = x[j * n + i];
      x[j * n + i] = C(0);
    }
  });
}

// to = one triangle of a, with zeros elsewhere. to may be a.
template <typename Backend, typename C>
COHORT_DEVICE void copy_triangle(bool lower, int64_t n, const C *a, C *to) {
  Backend::block_for(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = begin; j < end; ++j) to[i * n + j] = (lower ? j <= i : j >= i) ? a[i * n + j] : C(0);
    }
  });
}

// x *= factor. As in BLAS, factor 0 does not read x: the result is 0 even where x is infinite.
template <typename Backend, typename C>
COHORT_DEVICE void scale(C factor, int64_t count, C *x) {
  if (factor == 1) return;
  if (factor == 0) return fill<Backend>(x, count, C(0));
  share_each<Backend>(count, [&](int64_t i) { x[i] *= factor; });
}

constexpr int kPanel = 16;  // columns that are eliminated at a time; `panel` (n, kPanel) holds them contiguously

// Reduces a (n, n) to its upper triangle with partial pivoting, and applies the same steps to b (n, n), if given.
// Returns the sign of the permutation; 0 if a column has no pivot.
template <typename Backend, typename C>
COHORT_DEVICE int eliminate(int64_t n, C *a, C *b, C *panel) {
  int sign = 1;
  for (int64_t first = 0; first < n; first += kPanel) {
    const int64_t width = n - first < kPanel ? n - first : kPanel, behind = first + width;
    share_each<Backend>(n - first, [&](int64_t i) {
      for (int64_t j = 0; j < kPanel; ++j) panel[i * kPanel + j] = j < width ? a[(first + i) * n + first + j] : C(0);
    });
    for (int64_t k = 0; k < width; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n - first; ++i) {
        if (std::abs(panel[i * kPanel + k]) > std::abs(panel[pivot * kPanel + k])) pivot = i;
      }
      if (panel[pivot * kPanel + k] == 0) return 0;
      Backend::block_sync();  // all threads have read the pivot before it moves
      if (pivot != k) {
        sign = -sign;
        swap<Backend>(panel + k * kPanel, panel + pivot * kPanel, kPanel);
        swap<Backend>(a + (first + k) * n + behind, a + (first + pivot) * n + behind, n - behind);
        if (b) swap<Backend>(b + (first + k) * n, b + (first + pivot) * n, n);
      }
      Backend::block_for(n - first - k - 1, [&](int64_t begin, int64_t end) {
        C top[kPanel];  // zeros up to the pivot: loops over whole rows vectorise
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
    const auto follow = [&](C *x, int64_t from) {  // applies the steps to the columns of x
      Backend::block_for(n - from, [&](int64_t begin, int64_t end) {
        int64_t i = first + 1;
        for (; i < behind; ++i) subtract_rows<1>(x, n, i, first, i, from + begin, from + end, at);
        for (; i + 4 <= n; i += 4) subtract_rows<4>(x, n, i, first, behind, from + begin, from + end, at);
        for (; i < n; ++i) subtract_rows<1>(x, n, i, first, behind, from + begin, from + end, at);
      });
    };
    follow(a, behind);
    if (b) follow(b, 0);
    share_each<Backend>(width, [&](int64_t i) {
      for (int64_t j = i; j < width; ++j) a[(first + i) * n + first + j] = panel[i * kPanel + j];
    });
  }
  return sign;
}

// to = a^-1; overwrites a with its triangle after elimination. Returns the sign of the permutation; 0 if a is
// singular: `to` is then undefined.
template <typename Backend, typename C>
COHORT_DEVICE int invert(int64_t n, C *a, C *to, C *panel) {
  set_identity<Backend>(n, to);
  const int sign = eliminate<Backend>(n, a, to, panel);
  if (sign != 0) solve_triangle<Backend>(false, false, n, n, a, to);
  return sign;
}

}  // namespace linalg
}  // namespace cohort
