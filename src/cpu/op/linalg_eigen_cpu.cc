// SPDX-License-Identifier: Apache-2.0
// syevd: eigenvectors and eigenvalues of symmetric matrices. The largest element of each vector is positive.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/op/tridiagonal_eigen.hpp"
#include "device/kernel_table.hpp"
#include "kernels/linalg_loops.hpp"
#include "kernels/linalg_reflections.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using linalg::Batch;
using linalg::kTogether;
using linalg::Reflections;

using Eight [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;
constexpr int64_t kEight = 8;
Eight *eights(double *x) { return reinterpret_cast<Eight *>(x); }

// Computes Q^T a Q, which is tridiagonal, of a symmetric a (n, n) whose lower triangle is read. Rows lie `step`
// apart, a multiple of kEight. Reflection i makes row i 0 except its element i - 1. It is stored in row i, and
// changes the matrix above that row by a -= v w^T + w v^T, in the same pass that multiplies the matrix by the next
// reflection's vector.
struct Tridiagonalize {
  // Writes diagonal (n), beside (n - 1) and taus (n); room has 4 * step elements.
  static void run(double *a, int64_t n, int64_t step, double *diagonal, double *beside, double *taus, double *room) {
    std::fill_n(room, 4 * step, 0.0);
    double *v = room, *const w = room + step, *x = room + 2 * step, *const y = room + 3 * step;
    for (int64_t i = n; i-- > 0;) {
      double *const row = a + i * step;
      for (int64_t j = 0; j <= i; ++j) row[j] -= v[i] * w[j] + w[i] * v[j];
      diagonal[i] = row[i];
      if (i == 0) return;
      const double tau = taus[i] = linalg::make_reflection<CpuBackend>(i, row, i - 1, beside + i - 1);
      std::copy_n(row, i, x);
      std::fill(x + i, x + step, 0.0);
      std::fill_n(y, step, 0.0);
      for (int64_t r = 0; r < i;) {
        if (r + 4 <= i) {
          pass<4>(a + r * step, step, r, v, w, x, y);
          r += 4;
        } else {
          pass<1>(a + r * step, step, r, v, w, x, y);
          r += 1;
        }
      }
      const double along = sum_over<double>(i, [=](int64_t j) { return x[j] * y[j]; });
      for (int64_t j = 0; j < i; ++j) w[j] = tau * (y[j] - tau / 2 * along * x[j]);
      w[i] = 0;
      std::swap(v, x);
    }
  }

 private:
  // Computes rows [r, r + kRows), up to the end of the block of kEight on the diagonal, which is kept complete.
  template <int kRows>
  static void pass(double *rows, int64_t step, int64_t r, double *v, double *w, double *x, double *y) {
    Eight sums[kRows] = {};
    const int64_t before = r / kEight * kEight;
    for (int64_t j = 0; j < before; j += kEight) {
      const Eight in_v = *eights(v + j), in_w = *eights(w + j), in_x = *eights(x + j);
      Eight in_y = *eights(y + j);
      for (int k = 0; k < kRows; ++k) {
        Eight *const at = eights(rows + k * step + j);
        const Eight value = *at - (v[r + k] * in_w + w[r + k] * in_v);
        *at = value;
        sums[k] += value * in_x;
        in_y += value * x[r + k];
      }
      *eights(y + j) = in_y;
    }
    for (int k = 0; k < kRows; ++k) {
      Eight *const at = eights(rows + k * step + before);
      *at -= v[r + k] * *eights(w + before) + w[r + k] * *eights(v + before);
      sums[k] += *at * *eights(x + before);
      y[r + k] += ((sums[k][0] + sums[k][4]) + (sums[k][2] + sums[k][6])) +
                  ((sums[k][1] + sums[k][5]) + (sums[k][3] + sums[k][7]));
    }
  }
};

// Reduces the matrix to tridiagonal form by reflections, then solves that by divide and conquer. Works in double, on
// a matrix scaled so that its largest element is between 1/2 and 1.
template <typename C>
class SyevdDivideAndConquer {
 public:
  explicit SyevdDivideAndConquer(const StepSpec &spec)
      : e_(spec.inputs[0].shape),
        step_((e_.cols + kEight - 1) / kEight * kEight),
        num_rooms_(CpuBackend::num_slots(spec, e_.count, 0)) {}
  size_t extra() const { return size_t(num_rooms_ * room()) * (sizeof(double) / sizeof(C)); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t work = 10 * e_.area() * e_.cols;
    parallel_ranges(lane, e_.count, 1 + 65536 / (work + 1), [&](int64_t range, int64_t begin, int64_t end) {
      double *const room = reinterpret_cast<double *>(extra) + range * this->room();
      for (int64_t i = begin; i < end; ++i) {
        decompose(i, in[0] + i * e_.area(), room, out[0] + i * e_.area(), out[1] ? out[1] + i * e_.cols : nullptr);
      }
    });
  }

 private:
  // Scratch memory: the matrix, diagonals and tau; then the memory of either step.
  int64_t room() const {
    return whole_lines(
        e_.cols * step_ + 3 * step_ +
        std::max(TridiagonalEigen::room(e_.cols) + e_.area() + Reflections<CpuBackend, double>::room(e_.cols),
                 4 * step_));
  }

  void decompose(int64_t index, const C *from, double *a, C *vectors, C *values) const {
    const int64_t n = e_.cols;
    if (n == 0) return;
    double *const diagonal = a + n * step_, *const beside = diagonal + step_, *const taus = beside + step_;
    double *const u = taus + step_, *const rest = u + e_.area();
    const int exponent = load(from, index, a);
    static const auto tridiagonalize = best_version<Tridiagonalize>();
    tridiagonalize(a, n, step_, diagonal, beside, taus, u);
    TridiagonalEigen(n, diagonal, beside, u, rest).run();
    turn_back(a, taus, u, rest);
    write(diagonal, exponent, u, reinterpret_cast<int64_t *>(rest), vectors, values);
  }
  // Returns the exponent of the power of 2 by which everything is divided.
  int load(const C *from, int64_t index, double *a) const {
    const int64_t n = e_.cols;
    double top = 0;
    bool finite = true;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        const double size = std::fabs(double(from[i * n + j]));
        finite &= size <= std::numeric_limits<double>::max();
        top = std::max(top, size);
      }
    }
    if (!finite) throw Error(Code::kExecution, text("A: expected finite numbers, found others in matrix ", index));
    int exponent = 0;
    std::frexp(top, &exponent);
    // In two steps, because neither 2^1024 nor 2^-1074 has an inverse.
    const double half = std::ldexp(1.0, -(exponent / 2)), rest = std::ldexp(1.0, -(exponent - exponent / 2));
    for (int64_t i = 0; i < n; ++i) {
      double *const row = a + i * step_;
      for (int64_t j = 0; j <= i; ++j) row[j] = double(from[i * n + j]) * half * rest;
      std::fill(row + i + 1, row + step_, 0.0);
      for (int64_t j = i / kEight * kEight; j < i; ++j)
        a[j * step_ + i] = row[j];  // completes the blocks on the diagonal
    }
    return exponent;
  }
  // Transforms the rows of u from vectors of the tridiagonal matrix to vectors of the whole one.
  void turn_back(double *a, const double *taus, double *u, double *room) const {
    const int64_t n = e_.cols;
    for (int64_t first = 1; first < n; first += kTogether) {
      const int64_t last = std::min(first + kTogether, n), width = last - 1;
      for (int64_t i = first; i < last; ++i) std::fill(a + i * step_ + i, a + i * step_ + width, 0.0);
      Reflections<CpuBackend, double>(last - first, width, a + first * step_, step_, taus + first, room)
          .apply(false, n, u, n);
    }
  }
  void write(const double *unordered, int exponent, const double *u, int64_t *order, C *vectors, C *values) const {
    const int64_t n = e_.cols;
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order, order + n,
              [=](int64_t x, int64_t y) { return unordered[x] != unordered[y] ? unordered[x] < unordered[y] : x < y; });
    for (int64_t i = 0; i < n; ++i) {
      const double *const row = u + order[i] * n;
      const auto largest =
          std::max_element(row, row + n, [](double x, double y) { return std::fabs(x) < std::fabs(y); });
      const double sign = *largest < 0 ? -1 : 1;
      for (int64_t k = 0; k < n; ++k) vectors[i * n + k] = C(sign * row[k]);
      if (values) values[i] = C(std::ldexp(unordered[order[i]], exponent));
    }
  }

  const Batch e_;
  const int64_t step_, num_rooms_;
};

COHORT_KERNEL_BY(cpu, _linalg_syevd, make_compute<SyevdDivideAndConquer>);

}  // namespace
}  // namespace cohort
