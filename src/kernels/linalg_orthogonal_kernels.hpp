// SPDX-License-Identifier: Apache-2.0
// Kernels of gelqf, a factorization into a lower triangle and orthonormal rows with the signs that LAPACK chooses,
// and the backward steps of gelqf and of syevd.
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

// A reflection per row makes the elements behind the diagonal 0; Q is the product of the reflections. They are
// applied kTogether at a time to the rows below, by matrix products.
template <typename Backend, typename C>
class Gelqf {
 public:
  explicit Gelqf(const StepSpec &spec)
      : e_(spec.inputs[0].shape),
        room_(whole_lines(e_.area() + e_.rows + kTogether * e_.cols + Reflections<Backend, C>::room(e_.rows))),
        num_rooms_(Backend::num_slots(spec, e_.count, work())) {}
  size_t extra() const { return size_t(num_rooms_ * room_); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    Backend::for_each_block_with_slot(lane, e_.count, work(), [=, *this] COHORT_DEVICE(int64_t index, int64_t room) {
      C *const a = extra + room * room_;
      linalg::copy<Backend>(in[0] + index * e_.area(), e_.area(), a);
      factor(a);
      if (out[1]) write_lower(a, out[1] + index * e_.rows * e_.rows);
      multiply(a, out[0] + index * e_.area());
    });
  }

 private:
  int64_t work() const { return e_.area() * e_.rows; }
  // A slot holds a copy of the matrix, which keeps the reflections above its diagonal; the tau of each reflection;
  // and the reflections of one group of rows.
  COHORT_DEVICE C *taus(C *a) const { return a + e_.area(); }

  // The reflections of rows [first, first + count), padded with zeros and ones before the diagonal.
  COHORT_DEVICE Reflections<Backend, C> reflections(C *a, int64_t first, int64_t count) const {
    const int64_t width = e_.cols - first;
    C *const v = taus(a) + e_.rows;
    for (int64_t i = 0; i < count; ++i) {
      const C *const row = a + (first + i) * e_.cols + first;
      C *const to = v + i * width;
      Backend::block_for(width, [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) to[j] = j > i ? row[j] : j == i ? C(1) : C(0);
      });
    }
    return Reflections<Backend, C>(count, width, v, width, taus(a) + first, v + kTogether * e_.cols);
  }
  COHORT_DEVICE void factor(C *a) const {
    const int64_t m = e_.rows, n = e_.cols;
    for (int64_t first = 0; first < m; first += kTogether) {
      const int64_t last = first + kTogether < m ? first + kTogether : m;
      for (int64_t i = first; i < last; ++i) {
        C *const row = a + i * n + i;
        double beta = 0;
        const C tau = linalg::make_reflection<Backend>(n - i, row, 0, &beta);
        for (int64_t r = i + 1; r < last; ++r) reflect(row, tau, n - i, a + r * n + i);
        linalg::share_each<Backend>(1, [&](int64_t) {
          taus(a)[i] = tau;
          row[0] = C(beta);
        });
      }
      if (last < m) reflections(a, first, last - first).apply(false, m - last, a + last * n + first, n);
    }
  }
  // x = x - tau (x v) v.
  COHORT_DEVICE void reflect(const C *v, C tau, int64_t length, C *x) const {
    const C sum = Backend::template block_sum<C>(length, [=](int64_t j) { return x[j] * v[j]; });
    Backend::block_for(length, [&](int64_t begin, int64_t end) {
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t j = begin; j < end; ++j) x[j] -= tau * sum * v[j];
    });
  }
  COHORT_DEVICE void write_lower(const C *a, C *l) const {
    linalg::share_each<Backend>(e_.rows, [&](int64_t i) {
      for (int64_t j = 0; j < e_.rows; ++j) l[i * e_.rows + j] = j <= i ? a[i * e_.cols + j] : C(0);
    });
  }
  COHORT_DEVICE void multiply(C *a, C *q) const {
    const int64_t m = e_.rows, n = e_.cols;
    linalg::fill<Backend>(q, e_.area(), C(0));
    linalg::share_each<Backend>(m, [&](int64_t i) { q[i * n + i] = 1; });
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
template <typename Backend, typename C>
class GelqfBackward {
 public:
  explicit GelqfBackward(const StepSpec &spec)
      : e_(spec.inputs[0].shape),
        room_(whole_lines(e_.rows * e_.rows)),
        num_rooms_(Backend::num_slots(spec, e_.count, e_.area() * e_.rows)) {}
  size_t extra() const { return size_t(num_rooms_ * room_); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t m = e_.rows, n = e_.cols;
    Backend::for_each_block_with_slot(
        lane, e_.count, e_.area() * m, [=, *this] COHORT_DEVICE(int64_t index, int64_t room) {
          const C *const dq = in[0] + index * e_.area(), *const dl = in[1] + index * m * m;
          const C *const q = in[2] + index * e_.area(), *const l = in[3] + index * m * m;
          C *const s = extra + room * room_, *const da = out[0] + index * e_.area();
          Backend::gemm(false, true, m, m, n, dq, q, C(0), s);
          linalg::scale<Backend>(C(-1), m * m, s);
          Backend::gemm(true, false, m, m, m, l, dl, C(1), s);
          linalg::share_each<Backend>(m, [&](int64_t i) {
            for (int64_t j = 0; j < i; ++j) s[j * m + i] = s[i * m + j];
          });
          linalg::copy<Backend>(dq, e_.area(), da);
          Backend::gemm(false, false, m, n, m, s, q, C(1), da);
          linalg::solve_triangle<Backend>(true, true, m, n, l, da);
        });
  }

 private:
  const Batch e_;
  const int64_t room_, num_rooms_;
};

// dA = U^T (M + diag(dL)) U, where M_ij = (W_ij - W_ji) / (2 (L_i - L_j)) and W = dU U^T.
template <typename Backend, typename C>
class SyevdBackward {
 public:
  explicit SyevdBackward(const StepSpec &spec)
      : e_(spec.inputs[0].shape),
        room_(whole_lines(2 * e_.area())),
        num_rooms_(Backend::num_slots(spec, e_.count, e_.area() * e_.cols)) {}
  size_t extra() const { return size_t(num_rooms_ * room_); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t n = e_.cols;
    Backend::for_each_block_with_slot(
        lane, e_.count, e_.area() * n, [=, *this] COHORT_DEVICE(int64_t index, int64_t room) {
          const C *const du = in[0] + index * e_.area(), *const dl = in[1] + index * n;
          const C *const u = in[2] + index * e_.area(), *const l = in[3] + index * n;
          C *const w = extra + room * room_, *const m = w + e_.area();
          Backend::gemm(false, true, n, n, n, du, u, C(0), w);
          linalg::share_each<Backend>(n, [&](int64_t i) {
            m[i * n + i] = dl[i];
            for (int64_t j = 0; j < i; ++j) {  // equal values, whose vectors have any direction, count as 1e-30 apart
              const C apart = l[i] - l[j] < C(1e-30) ? C(1e-30) : l[i] - l[j];
              m[i * n + j] = m[j * n + i] = (w[i * n + j] - w[j * n + i]) / (2 * apart);
            }
          });
          Backend::gemm(true, false, n, n, n, u, m, C(0), w);
          Backend::gemm(false, false, n, n, n, w, u, C(0), out[0] + index * e_.area());
        });
  }

 private:
  const Batch e_;
  const int64_t room_, num_rooms_;
};

template <typename Backend>
void register_linalg_orthogonal_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_linalg_gelqf", make_compute<Backend, Gelqf>);
  table.add("_backward__linalg_gelqf", make_compute<Backend, GelqfBackward>);
  table.add("_backward__linalg_syevd", make_compute<Backend, SyevdBackward>);
}

}  // namespace
}  // namespace cohort
