// SPDX-License-Identifier: Apache-2.0
// Gradients of factorizations, inverses and determinants as graphs. Each reads what the backward kernel of its operator
// reads. A is the input, L or X the output, H the head gradient.
#include "op/gradient_graph.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using V = GraphValue;
using G = GradientGraph;

V product(V a, V b, bool transpose_a = false, bool transpose_b = false) {
  return a.graph().apply("_linalg_gemm2", {a, b},
                         {{"transpose_a", transpose_a ? "1" : "0"}, {"transpose_b", transpose_b ? "1" : "0"}});
}

V transposed(V a) { return a.graph().apply("SwapAxis", {a}, {{"dim1", "-1"}, {"dim2", "-2"}}); }

// One triangle of a, with zeros elsewhere.
V triangle(V a, bool lower = true) {
  const AttrMap attrs{{"lower", lower ? "1" : "0"}};
  return a.graph().apply("_linalg_maketrian", {a.graph().apply("_linalg_extracttrian", {a}, attrs)}, attrs);
}

V diagonal(V a) { return a.graph().apply("_linalg_extractdiag", {a}); }
V on_diagonal(V a) { return a.graph().apply("_linalg_makediag", {a}); }

// op(A)^-1 B, or B op(A)^-1, for a triangular A.
V solve(V a, V b, bool transpose, bool rightside, bool lower = true) {
  return a.graph().apply(
      "_linalg_trsm", {a, b},
      {{"transpose", transpose ? "1" : "0"}, {"rightside", rightside ? "1" : "0"}, {"lower", lower ? "1" : "0"}});
}

// One number per matrix, reshaped to broadcast with the matrices.
V for_matrices(V numbers, const Shape &matrices) {
  Shape wide = matrices;
  wide[wide.rank() - 1] = wide[wide.rank() - 2] = 1;
  return numbers ? numbers.graph().reshape(numbers, wide) : numbers;
}

// op(A) X = alpha B. With W = op(A)^-T H: the gradient of B is alpha W, that of A the triangle of -W X^T; with A on the
// right likewise.
void of_trsm(G &g) {
  if (!g.head()) return;
  const auto &a = g.attrs<LinalgTriangleAttrs>();
  const V w = solve(g.input(0), g.head(), !a.transpose, a.rightside, a.lower), x = g.output(0);
  const V outer =
      a.rightside == a.transpose ? product(w, x, a.rightside, !a.rightside) : product(x, w, a.rightside, !a.rightside);
  g.give(0, -triangle(outer, a.lower));
  g.give(1, w * a.alpha);
}

// L^-T S L^-1 / 2, where S is the lower triangle of L^T H, mirrored across the diagonal.
void of_potrf(G &g) {
  if (!g.head()) return;
  const V l = g.output(0), low = triangle(product(l, g.head(), true));
  const V both = low + transposed(low) - on_diagonal(diagonal(low));
  g.give(0, solve(l, solve(l, both, true, false), false, true) * 0.5);
}

// With B = (A A^T)^-1: -B (H + H^T) B A, where B A is A^-T.
void of_potri(G &g) {
  if (!g.head()) return;
  const V b = g.output(0), sum = g.head() + transposed(g.head());
  g.give(0, -triangle(product(product(b, sum), solve(g.input(0), on_diagonal(diagonal(b) * 0.0 + 1.0), true, false))));
}

void of_inverse(G &g) {
  if (!g.head()) return;
  const V x = g.output(0);
  g.give(0, -product(product(x, g.head(), true), x, false, true));
}

V inverse_transposed(G &g) { return transposed(g.apply("_linalg_inverse", {g.input(0)})); }

void of_det(G &g) {
  if (!g.head()) return;
  const V det = g.apply("_linalg_det", {g.input(0)});
  g.give(0, for_matrices(g.head() * det, g.input_shape(0)) * inverse_transposed(g));
}

void of_slogdet(G &g) {
  if (g.head(1)) g.give(0, for_matrices(g.head(1), g.input_shape(0)) * inverse_transposed(g));
}

void of_sumlogdiag(G &g) {
  if (!g.head()) return;
  const V numbers = diagonal(g.input(0));
  Shape wide = numbers.shape();
  wide[wide.rank() - 1] = 1;
  g.give(0, on_diagonal(g.reshape(g.head(), wide) / numbers));
}

[[maybe_unused]] const bool defined = [] {
  define_gradient("_linalg_trsm", of_trsm);
  define_gradient("_linalg_potrf", of_potrf);
  define_gradient("_linalg_potri", of_potri);
  define_gradient("_linalg_inverse", of_inverse);
  define_gradient("_linalg_det", of_det);
  define_gradient("_linalg_slogdet", of_slogdet);
  define_gradient("_linalg_sumlogdiag", of_sumlogdiag);
  return true;
}();

}  // namespace
}  // namespace cohort
