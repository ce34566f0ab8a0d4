// SPDX-License-Identifier: Apache-2.0
// The bodies of op/linalg.hpp: factorizations, for all backends.
// Factorizations, inverses and determinants; diagonals and triangles.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/linalg_loops.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using linalg::Batch;

// What all of these know of their step: the square matrices, first input or output of the kernel.
struct Squares {
  explicit Squares(const Shape &s) : count(s.size(0, s.rank() - 2)), n(s[s.rank() - 1]) {}
  COHORT_HOST_DEVICE int64_t area() const { return n * n; }
  COHORT_HOST_DEVICE int64_t eliminated() const { return area() + n * linalg::kPanel; }  // a copy of one, and a panel
  int64_t work() const { return n * n * n; }
  const int64_t count, n;
};

template <typename C>
class Potrf {
 public:
  explicit Potrf(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    each_together(
        lane, e_.count, e_.work(),
        COHORT_BODY(int64_t i) { factor(in[0] + i * e_.area(), out[0] + i * e_.area(), i); });
  }

 private:
  // Row by row of l^T, in the upper triangle; then it is turned.
  COHORT_KERNEL_CODE void factor(const C *a, C *l, [[maybe_unused]] int64_t index) const {
    const int64_t n = e_.n;
    const auto at = [=](int64_t i, int64_t k) { return l[k * n + i]; };
    linalg::share_each(n, [&](int64_t i) {
      for (int64_t j = 0; j <= i; ++j) l[j * n + i] = a[i * n + j];
    });
    for (int64_t i = 0; i < n; ++i) {
      C *const row = l + i * n;
      share_out(n - i,
                [&](int64_t begin, int64_t end) { linalg::subtract_rows<1>(l, n, i, 0, i, i + begin, i + end, at); });
      const C square = row[i];
      if (!(square > 0)) {
        COHORT_FAILS("A: expected positive definite matrices, found that matrix ", index, " is not, at its row ", i);
      }
      const C root = square > 0 ? std::sqrt(square) : C(NAN);
      linalg::share_each(n - i - 1, [&](int64_t behind) { row[i + 1 + behind] /= root; });
      linalg::share_each(1, [&](int64_t) { row[i] = root; });
    }
    linalg::transpose_square(n, l);
    linalg::copy_triangle(true, n, l, l);
  }
  const Squares e_;
};

// With s the lower triangle of l^T head, mirrored above the diagonal: da = l^-T s l^-1 / 2.
template <typename C>
class PotrfBackward {
 public:
  explicit PotrfBackward(const StepSpec &spec) : e_(spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n;
    each_together(
        lane, e_.count, e_.work(), COHORT_BODY(int64_t index) {
          const C *const l = in[1] + index * e_.area();
          C *const da = out[0] + index * e_.area();
          gemm(true, false, n, n, n, l, in[0] + index * e_.area(), C(0), da);
          linalg::share_each(n, [&](int64_t i) {
            for (int64_t j = i + 1; j < n; ++j) da[i * n + j] = da[j * n + i];
          });
          linalg::solve_triangle(true, true, n, n, l, da);
          linalg::transpose_square(n, da);  // da l^-1 is (l^-T da^T)^T, which is symmetric
          linalg::solve_triangle(true, true, n, n, l, da);
          linalg::scale(C(0.5), n * n, da);
        });
  }

 private:
  const Squares e_;
};

// (a a^T)^-1 = a^-T a^-1, with a a lower triangle.
template <typename C>
class Potri {
 public:
  explicit Potri(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n;
    each_together(
        lane, e_.count, e_.work(), COHORT_BODY(int64_t index) {
          const C *const a = in[0] + index * e_.area();
          C *const to = out[0] + index * e_.area();
          linalg::set_identity(n, to);
          linalg::solve_triangle(true, false, n, n, a, to);
          linalg::solve_triangle(true, true, n, n, a, to);
        });
  }

 private:
  const Squares e_;
};

// With b the result: da = the lower triangle of -b (head + head^T) a^-T, transposed a^-1 (head + head^T) b.
template <typename C>
class PotriBackward {
 public:
  explicit PotriBackward(const StepSpec &spec) : e_(spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n;
    each_together(
        lane, e_.count, e_.work(), COHORT_BODY(int64_t i) {
          const C *const head = in[0] + i * e_.area(), *const b = in[2] + i * e_.area();
          C *const da = out[0] + i * e_.area();
          gemm(false, true, n, n, n, head, b, C(0), da);
          gemm(true, true, n, n, n, head, b, C(1), da);
          linalg::solve_triangle(true, false, n, n, in[1] + i * e_.area(), da);
          linalg::transpose_square(n, da);
          linalg::copy_triangle(true, n, da, da);
          linalg::scale(C(-1), n * n, da);
        });
  }

 private:
  const Squares e_;
};

template <typename C>
class Inverse {
 public:
  explicit Inverse(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return size_t(e_.count * e_.eliminated()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    each_together(
        lane, e_.count, e_.work(), COHORT_BODY(int64_t i) {
          C *const a = extra + i * e_.eliminated();
          linalg::copy(in[0] + i * e_.area(), e_.area(), a);
          if (linalg::invert(e_.n, a, out[0] + i * e_.area(), a + e_.area()) == 0) {
            COHORT_FAILS("A: expected matrices that have an inverse, found that matrix ", i, " is singular");
            linalg::fill(out[0] + i * e_.area(), e_.area(), C(NAN));
          }
        });
  }

 private:
  const Squares e_;
};

// With b the inverse: da = -b^T head b^T.
template <typename C>
class InverseBackward {
 public:
  explicit InverseBackward(const StepSpec &spec) : e_(spec.inputs[1].shape) {}
  size_t extra() const { return size_t(e_.count * e_.area()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t n = e_.n;
    each_together(
        lane, e_.count, e_.work(), COHORT_BODY(int64_t i) {
          const C *const b = in[1] + i * e_.area();
          C *const half = extra + i * e_.area(), *const da = out[0] + i * e_.area();
          gemm(false, true, n, n, n, in[0] + i * e_.area(), b, C(0), half);
          gemm(true, false, n, n, n, b, half, C(0), da);
          linalg::scale(C(-1), n * n, da);
        });
  }

 private:
  const Squares e_;
};

// det (one output), or sign and logarithm (two).
template <typename C>
class Determinant {
 public:
  explicit Determinant(const StepSpec &spec) : e_(spec.inputs[0].shape), log_(spec.outputs.size() > 1) {}
  size_t extra() const { return size_t(e_.count * e_.eliminated()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    each_together(
        lane, e_.count, e_.work(), COHORT_BODY(int64_t index) {
          C *const a = extra + index * e_.eliminated();
          linalg::copy(in[0] + index * e_.area(), e_.area(), a);
          C sign = C(linalg::eliminate(e_.n, a, static_cast<C *>(nullptr), a + e_.area()));
          linalg::share_each(1, [&](int64_t) {
            C product = sign, log = sign == 0 ? C(-INFINITY) : C(0);
            for (int64_t i = 0; sign != 0 && i < e_.n; ++i) {
              const C pivot = a[i * e_.n + i];
              product *= pivot;
              log += std::log(std::abs(pivot));
              if (pivot < 0) sign = -sign;
            }
            if (out[0]) out[0][index] = log_ ? sign : product;
            if (log_ && out[1]) out[1][index] = log;
          });
        });
  }

 private:
  const Squares e_;
  const bool log_;
};

// da = head det a^-T, for the logarithm head a^-T. Singular matrices get no gradient.
template <typename C>
class DeterminantBackward {
 public:
  explicit DeterminantBackward(const StepSpec &spec)
      : heads_(int(spec.inputs.size()) - 1), e_(spec.inputs[size_t(heads_)].shape) {}
  size_t extra() const { return size_t(e_.count * (e_.area() + e_.eliminated())); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t n = e_.n;
    each_together(
        lane, e_.count, e_.work(), COHORT_BODY(int64_t index) {
          C *const inverse = extra + index * (e_.area() + e_.eliminated()), *const a = inverse + e_.area();
          C *const da = out[0] + index * n * n;
          linalg::copy(in[heads_] + index * e_.area(), e_.area(), a);
          const int sign = linalg::invert(n, a, inverse, a + e_.area());
          if (sign == 0) {
            linalg::fill(da, n * n, C(0));
            return;
          }
          C factor = in[heads_ - 1][index];
          if (heads_ == 1) {
            factor *= C(sign);
            for (int64_t i = 0; i < n; ++i) factor *= a[i * n + i];
          }
          linalg::share_each(n, [&](int64_t i) {
            for (int64_t j = 0; j < n; ++j) da[i * n + j] = factor * inverse[j * n + i];
          });
        });
  }

 private:
  const int heads_;
  const Squares e_;
};

template <typename C, bool kBackward>
class SumLogDiag {
 public:
  explicit SumLogDiag(const StepSpec &spec) : e_(spec.inputs[kBackward ? 1 : 0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n;
    each_together(
        lane, e_.count, e_.area(), COHORT_BODY(int64_t index) {
          const C *const a = in[kBackward ? 1 : 0] + index * e_.area();
          C *const to = out[0] + index * (kBackward ? n * n : 1);
          if constexpr (kBackward) {
            linalg::fill(to, n * n, C(0));
            linalg::share_each(n, [&](int64_t i) { to[i * (n + 1)] = in[0][index] / a[i * (n + 1)]; });
          } else {
            linalg::share_each(1, [&](int64_t) {
              C sum = 0;
              for (int64_t i = 0; i < n; ++i) sum += std::log(a[i * (n + 1)]);
              *to = sum;
            });
          }
        });
  }

 private:
  const Squares e_;
};

// Between matrices and their diagonals or triangles: lower ones row by row, upper ones column by column. kMake: from
// the latter to the former.
template <typename C, bool kTriangle, bool kMake>
class Part {
 public:
  explicit Part(const StepSpec &spec)
      : a_(spec.attrs_as<LinalgDiagonalAttrs>()), e_(kMake ? spec.outputs[0].shape : spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n, offset = std::abs(a_.offset), order = n - offset;
    const int64_t length = kTriangle ? order * (order + 1) / 2 : order;
    each_together(
        lane, e_.count, e_.area(), COHORT_BODY(int64_t index) {
          const C *const from = in[0] + index * (kMake ? length : n * n);
          C *const to = out[0] + index * (kMake ? n * n : length);
          if (kMake) linalg::fill(to, n * n, C(0));
          linalg::share_each(order, [&](int64_t last) {
            const int64_t line = offset + last, begin = kTriangle ? last * (last + 1) / 2 : last;
            const int64_t first = kTriangle ? 0 : last;
            for (int64_t k = first; k <= last; ++k) {
              const int64_t at = a_.lower ? line * n + k : k * n + line, part = begin + k - first;
              if constexpr (kMake) {
                to[at] = from[part];
              } else {
                to[part] = from[at];
              }
            }
          });
        });
  }

 private:
  const LinalgDiagonalAttrs a_;
  const Squares e_;
};

template <typename C>
using SumLogDiagForward = SumLogDiag<C, false>;
template <typename C>
using SumLogDiagBackward = SumLogDiag<C, true>;
template <typename C>
using ExtractDiag = Part<C, false, false>;
template <typename C>
using MakeDiag = Part<C, false, true>;
template <typename C>
using ExtractTriangle = Part<C, true, false>;
template <typename C>
using MakeTriangle = Part<C, true, true>;

COHORT_KERNEL_BY(backend, _linalg_potrf, make_compute<Potrf>);
COHORT_KERNEL_BY(backend, _backward__linalg_potrf, make_compute<PotrfBackward>);
COHORT_KERNEL_BY(backend, _linalg_potri, make_compute<Potri>);
COHORT_KERNEL_BY(backend, _backward__linalg_potri, make_compute<PotriBackward>);
COHORT_KERNEL_BY(backend, _linalg_inverse, make_compute<Inverse>);
COHORT_KERNEL_BY(backend, _backward__linalg_inverse, make_compute<InverseBackward>);
COHORT_KERNEL_BY(backend, _linalg_det, make_compute<Determinant>);
COHORT_KERNEL_BY(backend, _backward__linalg_det, make_compute<DeterminantBackward>);
COHORT_KERNEL_BY(backend, _linalg_slogdet, make_compute<Determinant>);
COHORT_KERNEL_BY(backend, _backward__linalg_slogdet, make_compute<DeterminantBackward>);
COHORT_KERNEL_BY(backend, _linalg_sumlogdiag, make_compute<SumLogDiagForward>);
COHORT_KERNEL_BY(backend, _backward__linalg_sumlogdiag, make_compute<SumLogDiagBackward>);
COHORT_KERNEL_BY(backend, _linalg_extractdiag, make_compute<ExtractDiag>);
COHORT_KERNEL_BY(backend, _backward__linalg_extractdiag, make_compute<MakeDiag>);
COHORT_KERNEL_BY(backend, _linalg_makediag, make_compute<MakeDiag>);
COHORT_KERNEL_BY(backend, _backward__linalg_makediag, make_compute<ExtractDiag>);
COHORT_KERNEL_BY(backend, _linalg_extracttrian, make_compute<ExtractTriangle>);
COHORT_KERNEL_BY(backend, _backward__linalg_extracttrian, make_compute<MakeTriangle>);
COHORT_KERNEL_BY(backend, _linalg_maketrian, make_compute<MakeTriangle>);
COHORT_KERNEL_BY(backend, _backward__linalg_maketrian, make_compute<ExtractTriangle>);

}  // namespace
}  // namespace cohort
