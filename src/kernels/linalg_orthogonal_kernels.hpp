// SPDX-License-Identifier: Apache-2.0
// gelqf, a factorization into a triangle and orthonormal rows, whose signs are LAPACK's, and the gradients of it and of
// syevd. For all backends.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/linalg_loops.hpp"
#include "kernels/linalg_reflections.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using linalg::Batch;
using linalg::kTogether;
using linalg::Reflections;

// Row by row a reflection takes what is behind the diagonal to 0; Q is their product. Rows below those of kTogether
// reflections follow by products of matrices.
template <typename C>
class Gelqf {
 public:
  explicit Gelqf(const StepSpec &spec)
      : e_(spec.inputs[0].shape),
        room_(whole_lines(e_.area() + e_.rows + kTogether * e_.cols + Reflections<C>::room(e_.rows))),
        num_rooms_(rooms(spec, e_.count, work())) {}
  size_t extra() const { return size_t(num_rooms_ * room_); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    each_in_room(
        lane, e_.count, work(), COHORT_BODY(int64_t index, int64_t room) {
          C *const a = extra + room * room_;
          linalg::copy(in[0] + index * e_.area(), e_.area(), a);
          factor(a);
          if (out[1]) write_lower(a, out[1] + index * e_.rows * e_.rows);
          multiply(a, out[0] + index * e_.area());
        });
  }

 private:
  int64_t work() const { return e_.area() * e_.rows; }
  // A room holds a copy of the matrix, above whose diagonal the reflections are; tau of each; the reflections of some
  // rows.
  COHORT_KERNEL_CODE C *taus(C *a) const { return a + e_.area(); }

  // Of rows [first, first + count), with zeros and ones before what is behind the diagonal.
  COHORT_KERNEL_CODE Reflections<C> reflections(C *a, int64_t first, int64_t count) const {
    const int64_t width = e_.cols - first;
    C *const v = taus(a) + e_.rows;
    for (int64_t i = 0; i < count; ++i) {
      const C *const row = a + (first + i) * e_.cols + first;
      C *const to = v + i * width;
      share_out(width, [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) to[j] = j > i ? row[j] : j == i ? C(1) : C(0);
      });
    }
    return Reflections<C>(count, width, v, width, taus(a) + first, v + kTogether * e_.cols);
  }
  COHORT_KERNEL_CODE void factor(C *a) const {
    const int64_t m = e_.rows, n = e_.cols;
    for (int64_t first = 0; first < m; first += kTogether) {
      const int64_t last = first + kTogether < m ? first + kTogether : m;
      for (int64_t i = first; i < last; ++i) {
        C *const row = a + i * n + i;
        double beta = 0;
        const C tau = linalg::make_reflection(n - i, row, 0, &beta);
        for (int64_t r = i + 1; r < last; ++r) reflect(row, tau, n - i, a + r * n + i);
        linalg::share_each(1, [&](int64_t) {
          taus(a)[i] = tau;
          row[0] = C(beta);
        });
      }
      if (last < m) reflections(a, first, last - first).apply(false, m - last, a + last * n + first, n);
    }
  }
  // x = x - tau (x v) v.
  COHORT_KERNEL_CODE void reflect(const C *v, C tau, int64_t length, C *x) const {
    const C sum = sum_together<C>(length, [=](int64_t j) { return x[j] * v[j]; });
    share_out(length, [&](int64_t begin, int64_t end) {
      COHORT_VECTOR_LOOP
      for (int64_t j = begin; j < end; ++j) x[j] -= tau * sum * v[j];
    });
  }
  COHORT_KERNEL_CODE void write_lower(const C *a, C *l) const {
    linalg::share_each(e_.rows, [&](int64_t i) {
      for (int64_t j = 0; j < e_.rows; ++j) l[i * e_.rows + j] = j <= i ? a[i * e_.cols + j] : C(0);
    });
  }
  COHORT_KERNEL_CODE void multiply(C *a, C *q) const {
    const int64_t m = e_.rows, n = e_.cols;
    linalg::fill(q, e_.area(), C(0));
    linalg::share_each(m, [&](int64_t i) { q[i * n + i] = 1; });
    for (int64_t last = m; last > 0;) {
      const int64_t first = (last - 1) / kTogether * kTogether;
      reflections(a, first, last - first).apply(true, m - first, q + first * n + first, n);
      last = first;
    }
  }

  const Batch e_;
  const int64_t room_, num_rooms_;
};

// dA = L^-T (dQ + S Q), S the lower triangle of L^T dL - dQ Q^T mirrored above the diagonal.
template <typename C>
class GelqfBackward {
 public:
  explicit GelqfBackward(const StepSpec &spec)
      : e_(spec.inputs[0].shape),
        room_(whole_lines(e_.rows * e_.rows)),
        num_rooms_(rooms(spec, e_.count, e_.area() * e_.rows)) {}
  size_t extra() const { return size_t(num_rooms_ * room_); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t m = e_.rows, n = e_.cols;
    each_in_room(
        lane, e_.count, e_.area() * m, COHORT_BODY(int64_t index, int64_t room) {
          const C *const dq = in[0] + index * e_.area(), *const dl = in[1] + index * m * m;
          const C *const q = in[2] + index * e_.area(), *const l = in[3] + index * m * m;
          C *const s = extra + room * room_, *const da = out[0] + index * e_.area();
          gemm(false, true, m, m, n, dq, q, C(0), s);
          linalg::scale(C(-1), m * m, s);
          gemm(true, false, m, m, m, l, dl, C(1), s);
          linalg::share_each(m, [&](int64_t i) {
            for (int64_t j = 0; j < i; ++j) s[j * m + i] = s[i * m + j];
          });
          linalg::copy(dq, e_.area(), da);
          gemm(false, false, m, n, m, s, q, C(1), da);
          linalg::solve_triangle(true, true, m, n, l, da);
        });
  }

 private:
  const Batch e_;
  const int64_t room_, num_rooms_;
};

// dA = U^T (M + diag(dL)) U, where M_ij = (W_ij - W_ji) / (2 (L_i - L_j)) and W = dU U^T.
template <typename C>
class SyevdBackward {
 public:
  explicit SyevdBackward(const StepSpec &spec)
      : e_(spec.inputs[0].shape),
        room_(whole_lines(2 * e_.area())),
        num_rooms_(rooms(spec, e_.count, e_.area() * e_.cols)) {}
  size_t extra() const { return size_t(num_rooms_ * room_); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t n = e_.cols;
    each_in_room(
        lane, e_.count, e_.area() * n, COHORT_BODY(int64_t index, int64_t room) {
          const C *const du = in[0] + index * e_.area(), *const dl = in[1] + index * n;
          const C *const u = in[2] + index * e_.area(), *const l = in[3] + index * n;
          C *const w = extra + room * room_, *const m = w + e_.area();
          gemm(false, true, n, n, n, du, u, C(0), w);
          linalg::share_each(n, [&](int64_t i) {
            m[i * n + i] = dl[i];
            for (int64_t j = 0; j < i; ++j) {  // equal values, whose vectors are of any direction, count as 1e-30 apart
              const C apart = l[i] - l[j] < C(1e-30) ? C(1e-30) : l[i] - l[j];
              m[i * n + j] = m[j * n + i] = (w[i * n + j] - w[j * n + i]) / (2 * apart);
            }
          });
          gemm(true, false, n, n, n, u, m, C(0), w);
          gemm(false, false, n, n, n, w, u, C(0), out[0] + index * e_.area());
        });
  }

 private:
  const Batch e_;
  const int64_t room_, num_rooms_;
};

COHORT_KERNEL_BY(backend, _linalg_gelqf, make_compute<Gelqf>);
COHORT_KERNEL_BY(backend, _backward__linalg_gelqf, make_compute<GelqfBackward>);
COHORT_KERNEL_BY(backend, _backward__linalg_syevd, make_compute<SyevdBackward>);

}  // namespace
}  // namespace cohort
