// SPDX-License-Identifier: Apache-2.0
// Factorizations into orthogonal matrices: gelqf and syevd. Signs are LAPACK's in the first; in the second the largest
// element of each eigenvector is positive.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/op/compute_kernel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/linalg_loops.hpp"
#include "kernels/partial_sums.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using linalg::Batch;

// Row by row a reflection I - tau v v^T takes what is behind the diagonal to 0; Q is their product.
template <typename C>
class Gelqf {
 public:
  explicit Gelqf(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return size_t(e_.count * (e_.area() + e_.rows)); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    each_together(lane, e_.count, e_.area() * e_.rows, [=](int64_t index) {
      C *const work = extra + index * (e_.area() + e_.rows);
      std::copy_n(in[0] + index * e_.area(), e_.area(), work);
      factor(work, work + e_.area());
      if (out[1]) linalg_lower(work, out[1] + index * e_.rows * e_.rows);
      multiply(work, work + e_.area(), out[0] + index * e_.area());
    });
  }

 private:
  void factor(C *a, C *taus) const {
    const int64_t m = e_.rows, n = e_.cols;
    for (int64_t i = 0; i < m; ++i) {
      C *const row = a + i * n;
      double norm = 0;
      for (int64_t j = i + 1; j < n; ++j) norm += double(row[j]) * double(row[j]);
      taus[i] = 0;
      if (norm == 0) continue;
      const double alpha = double(row[i]), beta = -std::copysign(std::sqrt(alpha * alpha + norm), alpha);
      taus[i] = C((beta - alpha) / beta);
      for (int64_t j = i + 1; j < n; ++j) row[j] = C(double(row[j]) / (alpha - beta));
      for (int64_t r = i + 1; r < m; ++r) reflect(row, taus[i], i, a + r * n);
      row[i] = C(beta);
    }
  }
  // x = x - tau (x v) v with v = (0, ..., 1 at i, row[i + 1], ...).
  void reflect(const C *row, C tau, int64_t i, C *x) const {
    const C *const left = x + i + 1, *const right = row + i + 1;
    const C sum = x[i] + sum_over<C>(e_.cols - i - 1, [=](int64_t j) { return left[j] * right[j]; });
    x[i] -= tau * sum;
    for (int64_t j = i + 1; j < e_.cols; ++j) x[j] -= tau * sum * row[j];
  }
  void linalg_lower(const C *a, C *l) const {
    for (int64_t i = 0; i < e_.rows; ++i) {
      for (int64_t j = 0; j < e_.rows; ++j) l[i * e_.rows + j] = j <= i ? a[i * e_.cols + j] : C(0);
    }
  }
  void multiply(const C *a, const C *taus, C *q) const {
    std::fill_n(q, e_.area(), C(0));
    for (int64_t i = 0; i < e_.rows; ++i) q[i * e_.cols + i] = 1;
    for (int64_t i = e_.rows; i-- > 0;) {
      for (int64_t r = i; r < e_.rows; ++r) reflect(a + i * e_.cols, taus[i], i, q + r * e_.cols);
    }
  }

  const Batch e_;
};

// dA = L^-T (dQ + S Q), S the lower triangle of L^T dL - dQ Q^T mirrored above the diagonal.
template <typename C>
class GelqfBackward {
 public:
  explicit GelqfBackward(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return size_t(e_.count * e_.rows * e_.rows); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t m = e_.rows, n = e_.cols;
    each_together(lane, e_.count, e_.area() * m, [=](int64_t index) {
      const C *const dq = in[0] + index * e_.area(), *const dl = in[1] + index * m * m;
      const C *const q = in[2] + index * e_.area(), *const l = in[3] + index * m * m;
      C *const s = extra + index * m * m, *const da = out[0] + index * e_.area();
      gemm(false, true, m, m, n, dq, q, C(0), s);
      linalg::scale(C(-1), m * m, s);
      gemm(true, false, m, m, m, l, dl, C(1), s);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < i; ++j) s[j * m + i] = s[i * m + j];
      }
      std::copy_n(dq, e_.area(), da);
      gemm(false, false, m, n, m, s, q, C(1), da);
      linalg::solve_triangle(true, true, m, n, l, da);
    });
  }

 private:
  const Batch e_;
};

// Jacobi's method: rotations take one element off the diagonal to 0 after the other, until none is left. Slower than
// tridiagonal methods on large matrices, and exact to the last digits on all. Works in double.
template <typename C>
class Syevd {
 public:
  explicit Syevd(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return size_t(e_.count * 2 * e_.area()) * (sizeof(double) / sizeof(C)); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t n = e_.cols;
    each_together(lane, e_.count, 10 * e_.area() * n, [=](int64_t index) {
      double *const a = reinterpret_cast<double *>(extra) + index * 2 * e_.area(), *const u = a + e_.area();
      const C *const from = in[0] + index * e_.area();
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
          a[i * n + j] = a[j * n + i] = double(from[i * n + j]);
          u[i * n + j] = u[j * n + i] = i == j;
        }
      }
      diagonalize(a, u, index);
      write(a, u, out[0] + index * e_.area(), out[1] ? out[1] + index * n : nullptr);
    });
  }

 private:
  void diagonalize(double *a, double *u, int64_t index) const {
    const int64_t n = e_.cols;
    for (int sweep = 0; sweep < 60; ++sweep) {
      double off = 0, all = 0;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) (i == j ? all : off) += a[i * n + j] * a[i * n + j];
      }
      if (!std::isfinite(off + all)) {
        throw Error(Code::kExecution, text("A: expected finite numbers, found others in matrix ", index));
      }
      if (off <= (off + all) * 1e-30) return;
      for (int64_t p = 0; p < n; ++p) {
        for (int64_t q = p + 1; q < n; ++q) rotate(a, u, p, q);
      }
    }
    throw Error(Code::kExecution, text("A: found no eigenvalues of matrix ", index));
  }
  void rotate(double *a, double *u, int64_t p, int64_t q) const {
    const int64_t n = e_.cols;
    const double apq = a[p * n + q];
    if (apq == 0) return;
    const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    const double t = std::copysign(1.0, theta) / (std::fabs(theta) + std::hypot(1.0, theta));
    const double c = 1 / std::hypot(1.0, t), s = t * c;
    for (int64_t k = 0; k < n; ++k) {
      const double x = a[k * n + p], y = a[k * n + q];
      a[k * n + p] = c * x - s * y;
      a[k * n + q] = s * x + c * y;
    }
    for (double *rows : {a, u}) {
      for (int64_t k = 0; k < n; ++k) {
        const double x = rows[p * n + k], y = rows[q * n + k];
        rows[p * n + k] = c * x - s * y;
        rows[q * n + k] = s * x + c * y;
      }
    }
    a[p * n + q] = a[q * n + p] = 0;
  }
  void write(double *a, double *u, C *vectors, C *values) const {
    const int64_t n = e_.cols;
    for (int64_t i = 0; i < n; ++i) {  // selection: the values are few
      int64_t least = i;
      for (int64_t k = i + 1; k < n; ++k) {
        if (a[k * n + k] < a[least * n + least]) least = k;
      }
      std::swap(a[i * n + i], a[least * n + least]);
      if (least != i) std::swap_ranges(u + i * n, u + (i + 1) * n, u + least * n);
      const double *const row = u + i * n;
      const auto largest =
          std::max_element(row, row + n, [](double x, double y) { return std::fabs(x) < std::fabs(y); });
      const double sign = *largest < 0 ? -1 : 1;
      for (int64_t k = 0; k < n; ++k) vectors[i * n + k] = C(sign * row[k]);
      if (values) values[i] = C(a[i * n + i]);
    }
  }

  const Batch e_;
};

// dA = U^T (M + diag(dL)) U, where M_ij = (W_ij - W_ji) / (2 (L_i - L_j)) and W = dU U^T.
template <typename C>
class SyevdBackward {
 public:
  explicit SyevdBackward(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return size_t(e_.count * 2 * e_.area()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t n = e_.cols;
    each_together(lane, e_.count, e_.area() * n, [=](int64_t index) {
      const C *const du = in[0] + index * e_.area(), *const dl = in[1] + index * n;
      const C *const u = in[2] + index * e_.area(), *const l = in[3] + index * n;
      C *const w = extra + index * 2 * e_.area(), *const m = w + e_.area();
      gemm(false, true, n, n, n, du, u, C(0), w);
      for (int64_t i = 0; i < n; ++i) {
        m[i * n + i] = dl[i];
        for (int64_t j = 0; j < i; ++j) {  // equal values, whose vectors are of any direction, count as 1e-30 apart
          m[i * n + j] = m[j * n + i] = (w[i * n + j] - w[j * n + i]) / (2 * std::max(l[i] - l[j], C(1e-30)));
        }
      }
      gemm(true, false, n, n, n, u, m, C(0), w);
      gemm(false, false, n, n, n, w, u, C(0), out[0] + index * e_.area());
    });
  }

 private:
  const Batch e_;
};

COHORT_KERNEL_BY(cpu, _linalg_gelqf, make_compute<Gelqf>);
COHORT_KERNEL_BY(cpu, _backward__linalg_gelqf, make_compute<GelqfBackward>);
COHORT_KERNEL_BY(cpu, _linalg_syevd, make_compute<Syevd>);
COHORT_KERNEL_BY(cpu, _backward__linalg_syevd, make_compute<SyevdBackward>);

}  // namespace
}  // namespace cohort
