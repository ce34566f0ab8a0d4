// SPDX-License-Identifier: Apache-2.0
// gelqf, a factorization into a triangle and orthonormal rows, whose signs are LAPACK's.
#include <algorithm>

#include "cpu/op/compute_kernel.hpp"
#include "cpu/op/linalg_reflections.hpp"
#include "device/kernel_table.hpp"
#include "kernels/linalg_loops.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using linalg::Batch;

using linalg::kTogether;
using linalg::Reflections;
using linalg::rooms;

// Row by row a reflection takes what is behind the diagonal to 0; Q is their product. Rows below those of kTogether
// reflections follow by products of matrices.
template <typename C>
class Gelqf {
 public:
  explicit Gelqf(const StepSpec &spec) : e_(spec.inputs[0].shape), num_rooms_(rooms(spec, e_.count)) {}
  size_t extra() const { return size_t(num_rooms_ * room()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    each_together(lane, e_.count, e_.area() * e_.rows, [=](int64_t index, int64_t range) {
      C *const work = extra + range * room();
      std::copy_n(in[0] + index * e_.area(), e_.area(), work);
      factor(work);
      if (out[1]) linalg_lower(work, out[1] + index * e_.rows * e_.rows);
      multiply(work, out[0] + index * e_.area());
    });
  }

 private:
  // A copy of the matrix, above whose diagonal the reflections are; tau of each; the reflections of some rows.
  int64_t room() const {
    return whole_lines(e_.area() + e_.rows + kTogether * e_.cols + Reflections<C>::room(e_.rows));
  }
  C *taus(C *work) const { return work + e_.area(); }

  // Of rows [first, first + count), with zeros and ones before what is behind the diagonal.
  Reflections<C> reflections(C *a, int64_t first, int64_t count) const {
    const int64_t width = e_.cols - first;
    C *const v = taus(a) + e_.rows;
    for (int64_t i = 0; i < count; ++i) {
      const C *const row = a + (first + i) * e_.cols + first;
      std::fill_n(v + i * width, i, C(0));
      v[i * width + i] = 1;
      std::copy(row + i + 1, row + width, v + i * width + i + 1);
    }
    return Reflections<C>(count, width, v, width, taus(a) + first, v + kTogether * e_.cols);
  }
  void factor(C *a) const {
    const int64_t m = e_.rows, n = e_.cols;
    for (int64_t first = 0; first < m; first += kTogether) {
      const int64_t last = std::min(first + kTogether, m);
      for (int64_t i = first; i < last; ++i) {
        C *const row = a + i * n + i;
        double beta = 0;
        const C tau = taus(a)[i] = linalg::make_reflection(n - i, row, 0, &beta);
        for (int64_t r = i + 1; r < last; ++r) reflect(row, tau, n - i, a + r * n + i);
        row[0] = C(beta);
      }
      if (last < m) reflections(a, first, last - first).apply(false, m - last, a + last * n + first, n);
    }
  }
  // x = x - tau (x v) v.
  void reflect(const C *v, C tau, int64_t length, C *x) const {
    const C sum = sum_over<C>(length, [=](int64_t j) { return x[j] * v[j]; });
    COHORT_VECTOR_LOOP
    for (int64_t j = 0; j < length; ++j) x[j] -= tau * sum * v[j];
  }
  void linalg_lower(const C *a, C *l) const {
    for (int64_t i = 0; i < e_.rows; ++i) {
      for (int64_t j = 0; j < e_.rows; ++j) l[i * e_.rows + j] = j <= i ? a[i * e_.cols + j] : C(0);
    }
  }
  void multiply(C *a, C *q) const {
    const int64_t m = e_.rows, n = e_.cols;
    std::fill_n(q, e_.area(), C(0));
    for (int64_t i = 0; i < m; ++i) q[i * n + i] = 1;
    for (int64_t last = m; last > 0;) {
      const int64_t first = (last - 1) / kTogether * kTogether;
      reflections(a, first, last - first).apply(true, m - first, q + first * n + first, n);
      last = first;
    }
  }

  const Batch e_;
  const int64_t num_rooms_;
};

// dA = L^-T (dQ + S Q), S the lower triangle of L^T dL - dQ Q^T mirrored above the diagonal.
template <typename C>
class GelqfBackward {
 public:
  explicit GelqfBackward(const StepSpec &spec) : e_(spec.inputs[0].shape), num_rooms_(rooms(spec, e_.count)) {}
  size_t extra() const { return size_t(num_rooms_ * room()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t m = e_.rows, n = e_.cols;
    each_together(lane, e_.count, e_.area() * m, [=](int64_t index, int64_t range) {
      const C *const dq = in[0] + index * e_.area(), *const dl = in[1] + index * m * m;
      const C *const q = in[2] + index * e_.area(), *const l = in[3] + index * m * m;
      C *const s = extra + range * room(), *const da = out[0] + index * e_.area();
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
  int64_t room() const { return whole_lines(e_.rows * e_.rows); }
  const Batch e_;
  const int64_t num_rooms_;
};

COHORT_KERNEL_BY(cpu, _linalg_gelqf, make_compute<Gelqf>);
COHORT_KERNEL_BY(cpu, _backward__linalg_gelqf, make_compute<GelqfBackward>);

}  // namespace
}  // namespace cohort
