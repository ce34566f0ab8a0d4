// SPDX-License-Identifier: Apache-2.0
// Kernels of op/linalg.hpp: factorizations, inverses and determinants; diagonals and triangles.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/linalg_loops.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using linalg::Batch;

// The square matrices that are the first input or output of a kernel.
struct Squares {
  explicit Squares(const Shape &s) : count(s.size(0, s.rank() - 2)), n(s[s.rank() - 1]) {}
  COHORT_HOST_DEVICE int64_t area() const { return n * n; }
  COHORT_HOST_DEVICE int64_t eliminated() const {
    return area() + n * linalg::kPanel;
  }  // a copy of a matrix, and a panel
  int64_t work() const { return n * n * n; }
  const int64_t count, n;
};

template <typename Backend, typename C>
class Potrf {
 public:
  explicit Potrf(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::for_each_block(lane, e_.count, e_.work(), [=, *this] COHORT_DEVICE(int64_t i) {
      factor(in[0] + i * e_.area(), out[0] + i * e_.area(), i);
    });
  }

 private:
  // Computes l^T row by row in the upper triangle, then transposes it.
  COHORT_DEVICE void factor(const C *a, C *l, [[maybe_unused]] int64_t index) const {
    const int64_t n = e_.n;
    const auto at = [=](int64_t i, int64_t k) { return l[k * n + i]; };
    linalg::share_each<Backend>(n, [&](int64_t i) {
      for (int64_t j = 0; j <= i; ++j) l[j * n + i] = a[i * n + j];
    });
    for (int64_t i = 0; i < n; ++i) {
      C *const row = l + i * n;
      Backend::block_for(
          n - i, [&](int64_t begin, int64_t end) { linalg::subtract_rows<1>(l, n, i, 0, i, i + begin, i + end, at); });
      const C square = row[i];
      if (!(square > 0)) {
        Backend::fail("A: expected positive definite matrices, found that matrix ", index, " is not, at its row ", i);
      }
      const C root = square > 0 ? std::sqrt(square) : C(NAN);
      linalg::share_each<Backend>(n - i - 1, [&](int64_t behind) { row[i + 1 + behind] /= root; });
      linalg::share_each<Backend>(1, [&](int64_t) { row[i] = root; });
    }
    linalg::transpose_upper<Backend>(n, l);
  }
  const Squares e_;
};

// With s the lower triangle of l^T head, mirrored above the diagonal: da = l^-T s l^-1 / 2.
template <typename Backend, typename C>
class PotrfBackward {
 public:
  explicit PotrfBackward(const StepSpec &spec) : e_(spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n;
    Backend::for_each_block(lane, e_.count, e_.work(), [=, *this] COHORT_DEVICE(int64_t index) {
      const C *const l = in[1] + index * e_.area();
      C *const da = out[0] + index * e_.area();
      Backend::gemm(true, false, n, n, n, l, in[0] + index * e_.area(), C(0), da);
      linalg::share_each<Backend>(n, [&](int64_t i) {
        for (int64_t j = i + 1; j < n; ++j) da[i * n + j] = da[j * n + i];
      });
      linalg::solve_triangle<Backend>(true, true, n, n, l, da);
      linalg::transpose_square<Backend>(n, da);  // da l^-1 is (l^-T da^T)^T, which is symmetric
      linalg::solve_triangle<Backend>(true, true, n, n, l, da);
      linalg::scale<Backend>(C(0.5), n * n, da);
    });
  }

 private:
  const Squares e_;
};

// (a a^T)^-1 = a^-T a^-1, with a a lower triangle.
template <typename Backend, typename C>
class Potri {
 public:
  explicit Potri(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n;
    Backend::for_each_block(lane, e_.count, e_.work(), [=, *this] COHORT_DEVICE(int64_t index) {
      const C *const a = in[0] + index * e_.area();
      C *const to = out[0] + index * e_.area();
      linalg::set_identity<Backend>(n, to);
      linalg::solve_triangle<Backend>(true, false, n, n, a, to);
      linalg::solve_triangle<Backend>(true, true, n, n, a, to);
    });
  }

 private:
  const Squares e_;
};

// With b the result: da = the lower triangle of -b (head + head^T) a^-T. Computed transposed, as a^-1 (head + head^T)
// b.
template <typename Backend, typename C>
class PotriBackward {
 public:
  explicit PotriBackward(const StepSpec &spec) : e_(spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n;
    Backend::for_each_block(lane, e_.count, e_.work(), [=, *this] COHORT_DEVICE(int64_t i) {
      const C *const head = in[0] + i * e_.area(), *const b = in[2] + i * e_.area();
      C *const da = out[0] + i * e_.area();
      Backend::gemm(false, true, n, n, n, head, b, C(0), da);
      Backend::gemm(true, true, n, n, n, head, b, C(1), da);
      linalg::solve_triangle<Backend>(true, false, n, n, in[1] + i * e_.area(), da);
      linalg::transpose_upper<Backend>(n, da);
      linalg::scale<Backend>(C(-1), n * n, da);
    });
  }

 private:
  const Squares e_;
};

template <typename Backend, typename C>
class Inverse {
 public:
  explicit Inverse(const StepSpec &spec) : e_(spec.inputs[0].shape) {}
  size_t extra() const { return size_t(e_.count * e_.eliminated()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    Backend::for_each_block(lane, e_.count, e_.work(), [=, *this] COHORT_DEVICE(int64_t i) {
      C *const a = extra + i * e_.eliminated();
      linalg::copy<Backend>(in[0] + i * e_.area(), e_.area(), a);
      if (linalg::invert<Backend>(e_.n, a, out[0] + i * e_.area(), a + e_.area()) == 0) {
        Backend::fail("A: expected matrices that have an inverse, found that matrix ", i, " is singular");
        linalg::fill<Backend>(out[0] + i * e_.area(), e_.area(), C(NAN));
      }
    });
  }

 private:
  const Squares e_;
};

// With b the inverse: da = -b^T head b^T.
template <typename Backend, typename C>
class InverseBackward {
 public:
  explicit InverseBackward(const StepSpec &spec) : e_(spec.inputs[1].shape) {}
  size_t extra() const { return size_t(e_.count * e_.area()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t n = e_.n;
    Backend::for_each_block(lane, e_.count, e_.work(), [=, *this] COHORT_DEVICE(int64_t i) {
      const C *const b = in[1] + i * e_.area();
      C *const half = extra + i * e_.area(), *const da = out[0] + i * e_.area();
      Backend::gemm(false, true, n, n, n, in[0] + i * e_.area(), b, C(0), half);
      Backend::gemm(true, false, n, n, n, b, half, C(0), da);
      linalg::scale<Backend>(C(-1), n * n, da);
    });
  }

 private:
  const Squares e_;
};

// det (one output), or sign and logarithm (two).
template <typename Backend, typename C>
class Determinant {
 public:
  explicit Determinant(const StepSpec &spec) : e_(spec.inputs[0].shape), log_(spec.outputs.size() > 1) {}
  size_t extra() const { return size_t(e_.count * e_.eliminated()); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    Backend::for_each_block(lane, e_.count, e_.work(), [=, *this] COHORT_DEVICE(int64_t index) {
      C *const a = extra + index * e_.eliminated();
      linalg::copy<Backend>(in[0] + index * e_.area(), e_.area(), a);
      C sign = C(linalg::eliminate<Backend>(e_.n, a, static_cast<C *>(nullptr), a + e_.area()));
      linalg::share_each<Backend>(1, [&](int64_t) {
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

// da = head det a^-T; of the logarithm, head a^-T. Singular matrices get a zero gradient.
template <typename Backend, typename C>
class DeterminantBackward {
 public:
  explicit DeterminantBackward(const StepSpec &spec)
      : heads_(int(spec.inputs.size()) - 1), e_(spec.inputs[size_t(heads_)].shape) {}
  size_t extra() const { return size_t(e_.count * (e_.area() + e_.eliminated())); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t n = e_.n;
    Backend::for_each_block(lane, e_.count, e_.work(), [=, *this] COHORT_DEVICE(int64_t index) {
      C *const inverse = extra + index * (e_.area() + e_.eliminated()), *const a = inverse + e_.area();
      C *const da = out[0] + index * n * n;
      linalg::copy<Backend>(in[heads_] + index * e_.area(), e_.area(), a);
      const int sign = linalg::invert<Backend>(n, a, inverse, a + e_.area());
      if (sign == 0) {
        linalg::fill<Backend>(da, n * n, C(0));
        return;
      }
      C factor = in[heads_ - 1][index];
      if (heads_ == 1) {
        factor *= C(sign);
        for (int64_t i = 0; i < n; ++i) factor *= a[i * n + i];
      }
      linalg::share_each<Backend>(n, [&](int64_t i) {
        for (int64_t j = 0; j < n; ++j) da[i * n + j] = factor * inverse[j * n + i];
      });
    });
  }

 private:
  const int heads_;
  const Squares e_;
};

template <typename Backend, typename C, bool kBackward>
class SumLogDiag {
 public:
  explicit SumLogDiag(const StepSpec &spec) : e_(spec.inputs[kBackward ? 1 : 0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n;
    Backend::for_each_block(lane, e_.count, e_.area(), [=, *this] COHORT_DEVICE(int64_t index) {
      const C *const a = in[kBackward ? 1 : 0] + index * e_.area();
      C *const to = out[0] + index * (kBackward ? n * n : 1);
      if constexpr (kBackward) {
        linalg::fill<Backend>(to, n * n, C(0));
        linalg::share_each<Backend>(n, [&](int64_t i) { to[i * (n + 1)] = in[0][index] / a[i * (n + 1)]; });
      } else {
        linalg::share_each<Backend>(1, [&](int64_t) {
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

// Copies between matrices and their diagonals or triangles, which are stored row by row if lower, else column by
// column. kMake: from diagonals or triangles to matrices.
template <typename Backend, typename C, bool kTriangle, bool kMake>
class DiagonalOrTriangle {
 public:
  explicit DiagonalOrTriangle(const StepSpec &spec)
      : a_(spec.attrs_as<LinalgDiagonalAttrs>()), e_(kMake ? spec.outputs[0].shape : spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t n = e_.n, offset = std::abs(a_.offset), order = n - offset;
    const int64_t length = kTriangle ? order * (order + 1) / 2 : order;
    Backend::for_each_block(lane, e_.count, e_.area(), [=, *this] COHORT_DEVICE(int64_t index) {
      const C *const from = in[0] + index * (kMake ? length : n * n);
      C *const to = out[0] + index * (kMake ? n * n : length);
      if (kMake) linalg::fill<Backend>(to, n * n, C(0));
      linalg::share_each<Backend>(order, [&](int64_t last) {
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

template <typename Backend, typename C>
using SumLogDiagForward = SumLogDiag<Backend, C, false>;
template <typename Backend, typename C>
using SumLogDiagBackward = SumLogDiag<Backend, C, true>;
template <typename Backend, typename C>
using ExtractDiag = DiagonalOrTriangle<Backend, C, false, false>;
template <typename Backend, typename C>
using MakeDiag = DiagonalOrTriangle<Backend, C, false, true>;
template <typename Backend, typename C>
using ExtractTriangle = DiagonalOrTriangle<Backend, C, true, false>;
template <typename Backend, typename C>
using MakeTriangle = DiagonalOrTriangle<Backend, C, true, true>;

template <typename Backend>
void register_linalg_factor_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_linalg_potrf", make_compute<Backend, Potrf>);
  table.add("_backward__linalg_potrf", make_compute<Backend, PotrfBackward>);
  table.add("_linalg_potri", make_compute<Backend, Potri>);
  table.add("_backward__linalg_potri", make_compute<Backend, PotriBackward>);
  table.add("_linalg_inverse", make_compute<Backend, Inverse>);
  table.add("_backward__linalg_inverse", make_compute<Backend, InverseBackward>);
  table.add("_linalg_det", make_compute<Backend, Determinant>);
  table.add("_backward__linalg_det", make_compute<Backend, DeterminantBackward>);
  table.add("_linalg_slogdet", make_compute<Backend, Determinant>);
  table.add("_backward__linalg_slogdet", make_compute<Backend, DeterminantBackward>);
  table.add("_linalg_sumlogdiag", make_compute<Backend, SumLogDiagForward>);
  table.add("_backward__linalg_sumlogdiag", make_compute<Backend, SumLogDiagBackward>);
  table.add("_linalg_extractdiag", make_compute<Backend, ExtractDiag>);
  table.add("_backward__linalg_extractdiag", make_compute<Backend, MakeDiag>);
  table.add("_linalg_makediag", make_compute<Backend, MakeDiag>);
  table.add("_backward__linalg_makediag", make_compute<Backend, ExtractDiag>);
  table.add("_linalg_extracttrian", make_compute<Backend, ExtractTriangle>);
  table.add("_backward__linalg_extracttrian", make_compute<Backend, MakeTriangle>);
  table.add("_linalg_maketrian", make_compute<Backend, MakeTriangle>);
  table.add("_backward__linalg_maketrian", make_compute<Backend, ExtractTriangle>);
}

}  // namespace
}  // namespace cohort
