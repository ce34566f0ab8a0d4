// SPDX-License-Identifier: Apache-2.0
#include "op/linalg.hpp"

#include <cmath>
#include <cstdlib>

namespace cohort {
namespace {

constexpr int64_t kUnknown = Shape::kUnknown;

void check_rank(const Shape &s, int least, const char *name) {
  if (s.rank() >= least) return;
  throw Error(Code::kShape, text(name, ": expected at least ", least, " axes, found ", s), name);
}

void check_square(const Shape &s, const char *name) {
  check_rank(s, 2, name);
  const int64_t rows = s[s.rank() - 2], cols = s[s.rank() - 1];
  if (rows == cols || rows == kUnknown || cols == kUnknown) return;
  throw Error(Code::kShape, text(name, ": expected square matrices, found ", s), name);
}

// The lengths of all axes except the last `dropped`, followed by `more`.
Shape with_tail(const Shape &s, int dropped, std::initializer_list<int64_t> more) {
  std::vector<int64_t> result(s.begin(), s.end() - dropped);
  result.insert(result.end(), more.begin(), more.end());
  return Shape(result);
}

void infer_real(const Attrs &, Dtypes &in, Dtypes &out) {
  infer_same_dtype(Attrs(), in, out);
  if (in[0] == Dtype::kNone || in[0] == Dtype::kFloat32 || in[0] == Dtype::kFloat64) return;
  throw Error(Code::kDtype, text("A: expected float32 or float64, found ", in[0]), "A");
}

template <typename A>
OpBuilder<A> linalg(const char *name, const char *doc) {
  OpBuilder<A> op((std::string("_linalg_") + name).c_str());
  op.alias((std::string("linalg_") + name).c_str())
      .doc(doc)
      .names_only_input()
      .infer_dtype([](const A &, Dtypes &in, Dtypes &out) { infer_real(Attrs(), in, out); });
  return op;
}

// An approximate operation count: `times` elements of the first input times the number of rows of its matrices.
std::function<double(const NoAttrs &, const Shapes &, const Shapes &)> by_rows(double times) {
  return [times](const NoAttrs &, const Shapes &in, const Shapes &) {
    return times * double(in[0].size()) * double(in[0][in[0].rank() - 2]);
  };
}

// ---- products and solutions ----------------------------------------------------------------------------------------

void infer_gemm(const LinalgGemmAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known() || !in[1].rank_known()) return;
  const int rank = in[0].rank();
  check_rank(in[0], 2, "A");
  unify(in[1], Shape::of_rank(rank), "B");
  const int axis = normalize_axis(a.axis, rank, "axis"), last = rank - 1;
  if (axis == last) {
    throw Error(Code::kInvalidArgument, text("attribute 'axis': expected an axis other than the last, found ", a.axis),
                "axis");
  }
  const Shape &l = in[0], &r = in[1];
  Shape result = l;
  result[axis] = l[a.transpose_a ? last : axis];
  result[last] = r[a.transpose_b ? axis : last];
  const int64_t left = l[a.transpose_a ? axis : last], right = r[a.transpose_b ? last : axis];
  bool fits = left == right || left == kUnknown || right == kUnknown;
  for (int i = 0; i < last; ++i) fits = fits && (i == axis || l[i] == r[i] || l[i] == kUnknown || r[i] == kUnknown);
  if (!fits) {
    throw Error(Code::kShape, text("B: expected matrices that can be multiplied with those of A ", l, ", found ", r),
                "B");
  }
  if (a.adds) unify(in[2], result, "C");
  unify(out[0], result, "output");
}

OpBuilder<LinalgGemmAttrs> gemm(const char *name, const char *doc, bool adds) {
  using A = LinalgGemmAttrs;
  auto op = linalg<A>(name, doc);
  op.input("A", "The left factors.").input("B", "The right factors.");
  if (adds) op.input("C", "The addends.");
  op.attr(&A::transpose_a, "transpose_a", false, "Whether the matrices of A are transposed.")
      .attr(&A::transpose_b, "transpose_b", false, "Whether the matrices of B are transposed.")
      .attr(&A::alpha, "alpha", 1.0, "Factor of the product.");
  if (adds) op.attr(&A::beta, "beta", 1.0, "Factor of C.");
  op.attr(&A::axis, "axis", -2, "The axis of the rows.")
      .check([adds](A &a) {
        a.adds = adds;
        if (!adds) a.beta = 0;
      })
      .infer_shape(infer_gemm)
      .flops([](const A &a, const Shapes &in, const Shapes &out) {
        const int last = in[0].rank() - 1, axis = normalize_axis(a.axis, in[0].rank(), "axis");
        return 2 * double(out[0].size()) * double(in[0][a.transpose_a ? axis : last]);
      })
      .gradient(Gradient::by_kernel(adds ? std::vector<int>{0, 1, 2} : std::vector<int>{0, 1}, {0, 1}));
  return op;
}

void infer_triangle(const LinalgTriangleAttrs &a, Shapes &in, Shapes &out) {
  unify(in[1], out[0], "B");
  unify(out[0], in[1], "output");
  if (in[0].rank_known()) check_square(in[0], "A");
  if (!in[1].rank_known()) return;
  check_rank(in[1], 2, "B");
  const int64_t n = in[1][in[1].rank() - (a.rightside ? 1 : 2)];
  unify(in[0], with_tail(in[1], 2, {n, n}), "A");
}

OpBuilder<LinalgTriangleAttrs> triangle(const char *name, const char *doc) {
  using A = LinalgTriangleAttrs;
  auto op = linalg<A>(name, doc);
  op.input("A", "Square matrices; only one triangle is read.")
      .input("B", "Matrices, in the last two axes.")
      .attr(&A::transpose, "transpose", false, "Whether the triangle is transposed.")
      .attr(&A::rightside, "rightside", false, "Whether the triangle is to the right of B.")
      .attr(&A::lower, "lower", true, "Whether the lower triangle is read.")
      .attr(&A::alpha, "alpha", 1.0, "Factor of the result.")
      .infer_shape(infer_triangle)
      .flops([](const A &, const Shapes &in, const Shapes &) {
        return double(in[1].size()) * double(in[0][in[0].rank() - 1]);
      });
  return op;
}

void infer_syrk(const LinalgSyrkAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  check_rank(in[0], 2, "A");
  const int64_t n = in[0][in[0].rank() - (a.transpose ? 1 : 2)];
  unify(out[0], with_tail(in[0], 2, {n, n}), "output");
}

// ---- square matrices -----------------------------------------------------------------------------------------------

void infer_square(const NoAttrs &, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "A");
  unify(out[0], in[0], "output");
  if (in[0].rank_known()) check_square(in[0], "A");
}

// One number per matrix.
void infer_number(const NoAttrs &, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  check_square(in[0], "A");
  const Shape numbers = in[0].rank() == 2 ? Shape{1} : with_tail(in[0], 2, {});
  for (Shape &s : out) unify(s, numbers, "output");
}

OpBuilder<NoAttrs> square(const char *name, const char *doc, const char *input) {
  auto op = linalg<NoAttrs>(name, doc);
  op.input("A", input);
  return op;
}

// ---- diagonals and triangles ---------------------------------------------------------------------------------------

int64_t checked_order(const LinalgDiagonalAttrs &a, const Shape &matrices) {
  check_square(matrices, "A");
  const int64_t n = matrices[matrices.rank() - 1], order = n == kUnknown ? n : n - std::abs(int64_t(a.offset));
  if (n != kUnknown && order < 1) {
    throw Error(Code::kShape, text("A: expected matrices with a diagonal at offset ", a.offset, ", found ", matrices),
                "A");
  }
  return order;
}

void infer_extractdiag(const LinalgDiagonalAttrs &a, Shapes &in, Shapes &out) {
  if (in[0].rank_known()) unify(out[0], with_tail(in[0], 2, {checked_order(a, in[0])}), "output");
}

void infer_extracttrian(const LinalgDiagonalAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  const int64_t n = checked_order(a, in[0]);
  unify(out[0], with_tail(in[0], 2, {n == kUnknown ? n : n * (n + 1) / 2}), "output");
}

void infer_makediag(const LinalgDiagonalAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  check_rank(in[0], 1, "A");
  const int64_t length = in[0][in[0].rank() - 1];
  const int64_t n = length == kUnknown ? length : length + std::abs(int64_t(a.offset));
  unify(out[0], with_tail(in[0], 1, {n, n}), "output");
}

void infer_maketrian(const LinalgDiagonalAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  check_rank(in[0], 1, "A");
  const int64_t length = in[0][in[0].rank() - 1];
  if (length == kUnknown) return;
  const auto order = int64_t((std::sqrt(1.0 + 8.0 * double(length)) - 1) / 2 + 0.5);
  if (order * (order + 1) / 2 != length) {
    throw Error(Code::kShape, text("A: expected the number of elements of a triangle on the last axis, found ", in[0]),
                "A");
  }
  const int64_t n = order + std::abs(int64_t(a.offset));
  unify(out[0], with_tail(in[0], 1, {n, n}), "output");
}

OpBuilder<LinalgDiagonalAttrs> diagonal(const char *name, const char *doc, const char *input) {
  auto op = linalg<LinalgDiagonalAttrs>(name, doc);
  op.input("A", input)
      .attr(&LinalgDiagonalAttrs::offset, "offset", 0,
            "Index of the diagonal: 0 is the main one, positive ones are above it.")
      .check([](LinalgDiagonalAttrs &a) {
        if (a.offset != 0) a.lower = a.offset < 0;
      })
      .gradient(Gradient::by_kernel({0}));
  return op;
}

void define_diagonals() {
  using A = LinalgDiagonalAttrs;
  const char *which = "Whether to use the lower triangle; only for offset 0.";
  diagonal("extractdiag", "A diagonal of each matrix.", "Square matrices.").infer_shape(infer_extractdiag);
  diagonal("makediag", "Matrices with A on a diagonal and zeros elsewhere.", "Diagonals, on the last axis.")
      .infer_shape(infer_makediag);
  diagonal("extracttrian", "A triangle of each matrix: a lower one row by row, an upper one column by column.",
           "Square matrices.")
      .attr(&A::lower, "lower", true, which)
      .infer_shape(infer_extracttrian);
  diagonal("maketrian", "Matrices with A in a triangle, in the order of extracttrian, and zeros elsewhere.",
           "Triangles, on the last axis.")
      .attr(&A::lower, "lower", true, which)
      .infer_shape(infer_maketrian);
}

[[maybe_unused]] const bool defined = [] {
  gemm("gemm", "alpha op(A) op(B) + beta C", true);
  gemm("gemm2", "alpha op(A) op(B)", false);
  triangle("trmm", "alpha op(A) B, or alpha B op(A), with a triangle of A.")
      .gradient(Gradient::by_kernel({0, 1}, {0, 1}));
  triangle("trsm", "Solves op(A) X = alpha B, or X op(A) = alpha B, with a triangle of A.")
      .gradient(Gradient::by_kernel({0, 1}, {0}, {0}));
  linalg<LinalgSyrkAttrs>("syrk", "alpha A A^T, or alpha A^T A if transposed.")
      .input("A", "Matrices, in the last two axes.")
      .attr(&LinalgSyrkAttrs::transpose, "transpose", false, "Whether to compute alpha A^T A.")
      .attr(&LinalgSyrkAttrs::alpha, "alpha", 1.0, "Factor of the product.")
      .infer_shape(infer_syrk)
      .flops([](const LinalgSyrkAttrs &, const Shapes &in, const Shapes &out) {
        return 2 * double(in[0].size()) * double(out[0][out[0].rank() - 1]);
      })
      .gradient(Gradient::by_kernel({0}, {0}));
  square("potrf", "Cholesky factorization: the lower triangle L with A = L L^T.",
         "Symmetric positive definite matrices.")
      .infer_shape(infer_square)
      .flops(by_rows(0.33))
      .gradient(Gradient::by_kernel({0}, {}, {0}));
  square("potri", "The inverse of A A^T.", "Lower triangles, as potrf gives them.")
      .infer_shape(infer_square)
      .flops(by_rows(1))
      .gradient(Gradient::by_kernel({0}, {0}, {0}));
  square("inverse", "The inverse of each matrix.", "Square matrices.")
      .alias("_npi_inv")
      .infer_shape(infer_square)
      .flops(by_rows(2))
      .gradient(Gradient::by_kernel({0}, {}, {0}));
  square("sumlogdiag", "The sum of the logarithms on the diagonal.", "Square matrices.")
      .infer_shape(infer_number)
      .gradient(Gradient::by_kernel({0}, {0}));
  square("det", "The determinant.", "Square matrices.")
      .alias("_npi_det")
      .output_names([](const NoAttrs &) { return std::vector<std::string>{"output0"}; })
      .infer_shape(infer_number)
      .flops(by_rows(0.67))
      .gradient(Gradient::by_kernel({0}, {0}));
  square("slogdet", "The sign of the determinant, and the logarithm of its absolute value.", "Square matrices.")
      .alias("_npi_slogdet")
      .outputs([](const NoAttrs &) { return 2; })
      .infer_shape(infer_number)
      .flops(by_rows(0.67))
      .gradient(Gradient::by_kernel({0}, {0}));
  square("gelqf", "LQ factorization: A = L Q with lower triangular L and orthonormal rows of Q.",
         "Matrices with at most as many rows as columns.")
      .outputs([](const NoAttrs &) { return 2; })
      .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
        unify(in[0], out[0], "A");
        unify(out[0], in[0], "Q");
        if (!in[0].rank_known()) return;
        check_rank(in[0], 2, "A");
        const int64_t rows = in[0][in[0].rank() - 2], cols = in[0][in[0].rank() - 1];
        if (rows != kUnknown && cols != kUnknown && rows > cols) {
          throw Error(Code::kShape, text("A: expected at most as many rows as columns, found ", in[0]), "A");
        }
        unify(out[1], with_tail(in[0], 2, {rows, rows}), "L");
      })
      .flops(by_rows(4))
      .gradient(Gradient::by_kernel({0}, {}, {0, 1}));
  square("syevd", "Eigendecomposition A = U^T diag(L) U: eigenvalues L ascending, eigenvectors in the rows of U.",
         "Symmetric matrices; only the lower triangle is read.")
      .outputs([](const NoAttrs &) { return 2; })
      .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
        unify(in[0], out[0], "A");
        unify(out[0], in[0], "U");
        if (!in[0].rank_known()) return;
        check_square(in[0], "A");
        unify(out[1], with_tail(in[0], 1, {}), "L");
      })
      .flops(by_rows(9))
      .gradient(Gradient::by_kernel({0}, {}, {0, 1}));
  define_diagonals();
  return true;
}();

}  // namespace
}  // namespace cohort
