// SPDX-License-Identifier: Apache-2.0
// Kernels of op/linalg.hpp: products of matrices, products with triangles, and solutions of triangular systems.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/linalg_loops.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using linalg::Batch;

// Matrices whose rows lie along any axis: (outer, rows, inner, cols). gather() copies them to (outer * inner, rows,
// cols).
struct Spread {
  int64_t outer, rows, inner, cols;

  Spread(const Shape &s, int axis)
      : outer(s.size(0, axis)), rows(s[axis]), inner(s.size(axis + 1, s.rank() - 1)), cols(s[s.rank() - 1]) {}
  int64_t count() const { return outer * inner; }
  int64_t size() const { return outer * rows * inner * cols; }
  bool dense() const { return inner == 1; }
  size_t extra() const { return dense() ? 0 : size_t(size()); }
  template <typename Backend, typename C, bool kBack>
  void move(const Lane &lane, const C *from, C *to) const {
    Backend::parallel_for(
        lane, outer * rows, 1 + 16384 / (inner * cols + 1), [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            for (int64_t i = 0; i < inner; ++i) {
              const int64_t spread = (row * inner + i) * cols;
              const int64_t together = ((row / rows * inner + i) * rows + row % rows) * cols;
              copy_elements(from + (kBack ? together : spread), cols, to + (kBack ? spread : together));
            }
          }
        });
  }
  // The matrices one behind another: `from` itself if they lie so, else a copy at *extra, which is advanced.
  template <typename Backend, typename C>
  const C *gather(const Lane &lane, const C *from, C **extra) const {
    if (dense()) return from;
    C *const to = *extra;
    *extra += size();
    move<Backend, C, false>(lane, from, to);
    return to;
  }
};

class GemmShapes {
 public:
  GemmShapes(const LinalgGemmAttrs &a, const Shape &left, const Shape &right, const Shape &result)
      : attrs_(a),
        axis_(normalize_axis(a.axis, left.rank(), "axis")),
        a_(left, axis_),
        b_(right, axis_),
        c_(result, axis_),
        inner_(a.transpose_a ? a_.rows : a_.cols) {}

 protected:
  const LinalgGemmAttrs attrs_;
  const int axis_;
  const Spread a_, b_, c_;
  const int64_t inner_;
};

// to = factor * x; to may be x. With factor 0 the result is 0 and x is not read.
template <typename Backend, typename C>
void scaled(const Lane &lane, C factor, int64_t count, const C *x, C *to) {
  if (factor == 1 && x == to) return;
  Backend::parallel_for(lane, count, Backend::kCheapGrain, [=] COHORT_DEVICE(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = factor != 0 ? factor * x[i] : C(0);
  });
}

template <typename Backend, typename C>
class LinalgGemmForward : GemmShapes {
 public:
  explicit LinalgGemmForward(const StepSpec &spec)
      : GemmShapes(spec.attrs_as<LinalgGemmAttrs>(), spec.inputs[0].shape, spec.inputs[1].shape,
                   spec.outputs[0].shape) {}
  size_t extra() const { return a_.extra() + b_.extra() + c_.extra(); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const C *const a = a_.template gather<Backend>(lane, in[0], &extra), *const b = b_.template gather<Backend>(
                                                                             lane, in[1], &extra);
    C *const c = c_.dense() ? out[0] : extra;
    const int64_t m = c_.rows, n = c_.cols, k = inner_;
    Backend::batched_gemm(lane, c_.count(), attrs_.transpose_a, attrs_.transpose_b, m, n, k, a, b, c);
    if (!c_.dense()) c_.template move<Backend, C, true>(lane, c, out[0]);
    const C alpha = C(attrs_.alpha), beta = C(attrs_.beta);
    const bool adds = attrs_.adds && beta != 0;  // as in BLAS: an addend with factor 0 is not read
    if (alpha == 1 && !adds) return;
    Backend::parallel_for(lane, c_.size(), Backend::kCheapGrain, [=] COHORT_DEVICE(int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out[0][i] = (alpha != 0 ? alpha * out[0][i] : C(0)) + (adds ? beta * in[2][i] : C(0));
    });
  }
};

template <typename Backend, typename C>
class LinalgGemmBackward : GemmShapes {
 public:
  explicit LinalgGemmBackward(const StepSpec &spec)
      : GemmShapes(spec.attrs_as<LinalgGemmAttrs>(), spec.inputs[1].shape, spec.inputs[2].shape, spec.inputs[0].shape) {
  }
  size_t extra() const { return 2 * (a_.extra() + b_.extra()) + c_.extra(); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const C *const head = c_.template gather<Backend>(lane, in[0], &extra), *const a = a_.template gather<Backend>(
                                                                                lane, in[1], &extra);
    const C *const b = b_.template gather<Backend>(lane, in[2], &extra);
    C *const da = a_.dense() ? out[0] : extra, *const db = b_.dense() ? out[1] : extra + a_.extra();
    const bool ta = attrs_.transpose_a, tb = attrs_.transpose_b;
    const int64_t m = c_.rows, n = c_.cols, k = inner_;
    if (out[0] && ta) Backend::batched_gemm(lane, c_.count(), tb, true, k, m, n, b, head, da);
    if (out[0] && !ta) Backend::batched_gemm(lane, c_.count(), false, !tb, m, k, n, head, b, da);
    if (out[1] && tb) Backend::batched_gemm(lane, c_.count(), true, ta, n, k, m, head, a, db);
    if (out[1] && !tb) Backend::batched_gemm(lane, c_.count(), !ta, false, k, n, m, a, head, db);
    if (out[0] && !a_.dense()) a_.template move<Backend, C, true>(lane, da, out[0]);
    if (out[1] && !b_.dense()) b_.template move<Backend, C, true>(lane, db, out[1]);
    if (out[0]) scaled<Backend>(lane, C(attrs_.alpha), a_.size(), out[0], out[0]);
    if (out[1]) scaled<Backend>(lane, C(attrs_.alpha), b_.size(), out[1], out[1]);
    if (attrs_.adds && out[2]) scaled<Backend>(lane, C(attrs_.beta), c_.size(), in[0], out[2]);
  }
};

// alpha op(a) b or alpha b op(a) with a triangle of a, which is copied into `square`. A block of rows, or columns, at
// a time: elements beyond its diagonal are skipped.
template <typename Backend, typename C>
COHORT_DEVICE void multiply_triangle(const LinalgTriangleAttrs &t, bool transpose, const Batch &e, const C *a,
                                     const C *b, C *square, C *to) {
  constexpr int64_t kBlock = 32;
  const int64_t n = t.rightside ? e.cols : e.rows;
  linalg::copy_triangle<Backend>(t.lower, n, a, square);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t last = first + kBlock < n ? first + kBlock : n;
    const bool until = (t.lower != transpose) != t.rightside;  // the block reads [0, last), else [first, n)
    const int64_t begin = until ? 0 : first, end = until ? last : n;
    const C *const part = square + (t.rightside != transpose ? begin * n + first : first * n + begin);
    if (t.rightside) {
      Backend::gemm(false, transpose, e.rows, last - first, end - begin, b + begin, n, part, n, C(0), to + first, n);
    } else {
      Backend::gemm(transpose, false, last - first, e.cols, end - begin, part, n, b + begin * e.cols, e.cols, C(0),
                    to + first * e.cols, e.cols);
    }
  }
  linalg::scale<Backend>(C(t.alpha), e.area(), to);
}

// b = op(a)^-1 b; or b = b op(a)^-1, by way of its transpose, which is kept in `transposed`.
template <typename Backend, typename C>
COHORT_DEVICE void solve_either(const LinalgTriangleAttrs &t, bool transpose, const Batch &e, const C *a, C *transposed,
                                C *b) {
  if (!t.rightside) return linalg::solve_triangle<Backend>(t.lower, transpose, e.rows, e.cols, a, b);
  linalg::transpose<Backend>(e.rows, e.cols, b, transposed);
  linalg::solve_triangle<Backend>(t.lower, !transpose, e.cols, e.rows, a, transposed);
  linalg::transpose<Backend>(e.cols, e.rows, transposed, b);
}

template <typename Backend, typename C, bool kSolve>
class TriangleForward {
 public:
  explicit TriangleForward(const StepSpec &spec)
      : t_(spec.attrs_as<LinalgTriangleAttrs>()), e_(spec.inputs[1].shape), n_(t_.rightside ? e_.cols : e_.rows) {}
  size_t extra() const { return size_t(e_.count * room()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    Backend::for_each_block(lane, e_.count, e_.area() * n_, [=, *this] COHORT_DEVICE(int64_t i) {
      const C *const a = in[0] + i * n_ * n_, *const b = in[1] + i * e_.area();
      C *const to = out[0] + i * e_.area(), *const mine = extra + i * room();
      if constexpr (kSolve) {
        linalg::copy<Backend>(b, e_.area(), to);
        linalg::scale<Backend>(C(t_.alpha), e_.area(), to);
        if (t_.alpha != 0) solve_either<Backend>(t_, t_.transpose, e_, a, mine, to);
      } else {
        multiply_triangle<Backend>(t_, t_.transpose, e_, a, b, mine, to);
      }
    });
  }

 private:
  COHORT_HOST_DEVICE int64_t room() const { return kSolve ? (t_.rightside ? e_.area() : 0) : n_ * n_; }
  const LinalgTriangleAttrs t_;
  const Batch e_;
  const int64_t n_;
};

// da = a triangle of factor * left right^T. The caller chooses the pair so that this is the gradient of a, not of
// op(a).
template <typename Backend, typename C>
COHORT_DEVICE void triangle_gradient(const LinalgTriangleAttrs &t, const Batch &e, C factor, const C *by_row,
                                     const C *by_col, C *da) {
  const int64_t n = t.rightside ? e.cols : e.rows, k = t.rightside ? e.rows : e.cols;
  if (t.transpose) {
    const C *const kept = by_row;
    by_row = by_col;
    by_col = kept;
  }
  Backend::gemm(t.rightside, !t.rightside, n, n, k, by_row, by_col, C(0), da);
  linalg::copy_triangle<Backend>(t.lower, n, da, da);
  linalg::scale<Backend>(factor, n * n, da);
}

// trmm with a on the left: db = alpha op(a)^T head, da = alpha head b^T.
template <typename Backend, typename C>
class TrmmBackward {
 public:
  explicit TrmmBackward(const StepSpec &spec)
      : t_(spec.attrs_as<LinalgTriangleAttrs>()), e_(spec.inputs[0].shape), n_(t_.rightside ? e_.cols : e_.rows) {}
  size_t extra() const { return size_t(e_.count * n_ * n_); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    Backend::for_each_block(lane, e_.count, e_.area() * n_, [=, *this] COHORT_DEVICE(int64_t i) {
      const C *const head = in[0] + i * e_.area(), *const b = in[2] + i * e_.area();
      if (out[1]) {
        multiply_triangle<Backend>(t_, !t_.transpose, e_, in[1] + i * n_ * n_, head, extra + i * n_ * n_,
                                   out[1] + i * e_.area());
      }
      if (!out[0]) return;
      const C *const row = t_.rightside ? b : head, *const col = t_.rightside ? head : b;
      triangle_gradient<Backend>(t_, e_, C(t_.alpha), row, col, out[0] + i * n_ * n_);
    });
  }

 private:
  const LinalgTriangleAttrs t_;
  const Batch e_;
  const int64_t n_;
};

// trsm with a on the left, x the result: g = op(a)^-T head, db = alpha g, da = -g x^T.
template <typename Backend, typename C>
class TrsmBackward {
 public:
  explicit TrsmBackward(const StepSpec &spec)
      : t_(spec.attrs_as<LinalgTriangleAttrs>()), e_(spec.inputs[0].shape), n_(t_.rightside ? e_.cols : e_.rows) {}
  size_t extra() const { return size_t(e_.count * room()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    Backend::for_each_block(lane, e_.count, e_.area() * n_, [=, *this] COHORT_DEVICE(int64_t i) {
      const C *const x = in[2] + i * e_.area();
      C *const g = extra + i * room();
      linalg::copy<Backend>(in[0] + i * e_.area(), e_.area(), g);
      solve_either<Backend>(t_, !t_.transpose, e_, in[1] + i * n_ * n_, g + e_.area(), g);
      if (out[1]) {
        linalg::copy<Backend>(g, e_.area(), out[1] + i * e_.area());
        linalg::scale<Backend>(C(t_.alpha), e_.area(), out[1] + i * e_.area());
      }
      if (!out[0]) return;
      const C *const row = t_.rightside ? x : g, *const col = t_.rightside ? g : x;
      triangle_gradient<Backend>(t_, e_, C(-1), row, col, out[0] + i * n_ * n_);
    });
  }

 private:
  COHORT_HOST_DEVICE int64_t room() const { return (t_.rightside ? 2 : 1) * e_.area(); }
  const LinalgTriangleAttrs t_;
  const Batch e_;
  const int64_t n_;
};

template <typename Backend, typename C>
class SyrkForward {
 public:
  explicit SyrkForward(const StepSpec &spec) : a_(spec.attrs_as<LinalgSyrkAttrs>()), e_(spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = a_.transpose ? e_.cols : e_.rows, k = a_.transpose ? e_.rows : e_.cols;
    Backend::for_each_block(lane, e_.count, n * n * k, [=, *this] COHORT_DEVICE(int64_t i) {
      const C *const a = in[0] + i * e_.area();
      Backend::gemm(a_.transpose, !a_.transpose, n, n, k, a, a, C(0), out[0] + i * n * n);
      linalg::scale<Backend>(C(a_.alpha), n * n, out[0] + i * n * n);
    });
  }

 private:
  const LinalgSyrkAttrs a_;
  const Batch e_;
};

// alpha (head + head^T) a, or alpha a (head + head^T).
template <typename Backend, typename C>
class SyrkBackward {
 public:
  explicit SyrkBackward(const StepSpec &spec) : a_(spec.attrs_as<LinalgSyrkAttrs>()), e_(spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = a_.transpose ? e_.cols : e_.rows;
    Backend::for_each_block(lane, e_.count, n * e_.area(), [=, *this] COHORT_DEVICE(int64_t i) {
      const C *const head = in[0] + i * n * n, *const a = in[1] + i * e_.area();
      C *const da = out[0] + i * e_.area();
      for (int k = 0; k < 2; ++k) {
        const bool transposed = k == 1;
        const C beta = transposed ? C(1) : C(0);
        if (a_.transpose) {
          Backend::gemm(false, transposed, e_.rows, n, n, a, head, beta, da);
        } else {
          Backend::gemm(transposed, false, n, e_.cols, n, head, a, beta, da);
        }
      }
      linalg::scale<Backend>(C(a_.alpha), e_.area(), da);
    });
  }

 private:
  const LinalgSyrkAttrs a_;
  const Batch e_;
};

template <typename Backend, typename C>
using TrmmForward = TriangleForward<Backend, C, false>;
template <typename Backend, typename C>
using TrsmForward = TriangleForward<Backend, C, true>;

template <typename Backend>
void register_linalg_product_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_linalg_gemm", make_compute<Backend, LinalgGemmForward>);
  table.add("_backward__linalg_gemm", make_compute<Backend, LinalgGemmBackward>);
  table.add("_linalg_gemm2", make_compute<Backend, LinalgGemmForward>);
  table.add("_backward__linalg_gemm2", make_compute<Backend, LinalgGemmBackward>);
  table.add("_linalg_trmm", make_compute<Backend, TrmmForward>);
  table.add("_backward__linalg_trmm", make_compute<Backend, TrmmBackward>);
  table.add("_linalg_trsm", make_compute<Backend, TrsmForward>);
  table.add("_backward__linalg_trsm", make_compute<Backend, TrsmBackward>);
  table.add("_linalg_syrk", make_compute<Backend, SyrkForward>);
  table.add("_backward__linalg_syrk", make_compute<Backend, SyrkBackward>);
}

}  // namespace
}  // namespace cohort
