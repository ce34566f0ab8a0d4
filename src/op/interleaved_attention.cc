// SPDX-License-Identifier: Apache-2.0
#include "op/interleaved_attention.hpp"

#include "op/checked_length.hpp"

namespace cohort {
namespace {

using A = InterleavedAttentionAttrs;

void check_projections(const A &a, const Shape &s, int64_t parts, const char *name) {
  if (!s.rank_known()) return;
  if (s.rank() == 3 && (s[2] == Shape::kUnknown || s[2] % (parts * a.heads) == 0)) return;
  throw Error(Code::kShape, text(name, ": expected (length, batch, a multiple of ", parts * a.heads, "), found ", s),
              name);
}

int64_t times(int64_t a, int64_t b) { return a == Shape::kUnknown ? a : checked_times(a, b); }

void infer_scores(const A &a, Shapes &in, Shapes &out) {
  check_projections(a, in[0], a.own_queries ? 1 : 3, a.own_queries ? "queries" : "queries_keys_values");
  if (!in[0].rank_known()) return;
  Shape keys = in[0];
  if (a.own_queries) {
    unify(in[1], Shape{Shape::kUnknown, in[0][1], times(in[0][2], 2)}, "keys_values");
    keys = in[1];
  }
  unify(out[0], Shape{times(in[0][1], a.heads), in[0][0], keys[0]}, "output");
}

void infer_values(const A &a, Shapes &in, Shapes &out) {
  const int64_t parts = a.own_queries ? 2 : 3;
  check_projections(a, in[0], parts, a.own_queries ? "keys_values" : "queries_keys_values");
  if (!in[0].rank_known()) return;
  const int64_t length = in[0][0], queries = a.own_queries ? Shape::kUnknown : length;
  unify(in[1], Shape{times(in[0][1], a.heads), queries, length}, "attention");
  unify(out[0], Shape{in[1][1], in[0][1], in[0][2] == Shape::kUnknown ? in[0][2] : in[0][2] / parts}, "output");
}

void define(const char *name, const char *doc, bool own_queries, bool scores) {
  OpBuilder<A> op(name);
  op.doc(doc)
      .names_only_input()
      .required(&A::heads, "heads", "The number of heads.")
      .range(1)
      .check([=](A &a) {
        a.own_queries = own_queries;
        a.scores = scores;
      })
      .infer_shape(scores ? infer_scores : infer_values)
      .same_float()
      .narrow()
      .gradient(scores && !own_queries ? Gradient::by_kernel({0}, {0}) : Gradient::by_kernel({0, 1}, {0, 1}));
  const char *const first = own_queries ? (scores ? "queries" : "keys_values") : "queries_keys_values";
  op.input(first, "Projections, (length, batch, heads * parts * width).");
  if (scores && own_queries) op.input("keys_values", "Keys and values, (key length, batch, heads * 2 * width).");
  if (!scores) op.input("attention", "(batch * heads, query length, key length).");
}

[[maybe_unused]] const bool defined = [] {
  define("_contrib_interleaved_matmul_selfatt_qk", "Self-attention scores: queries times keys / sqrt(width).", false,
         true);
  define("_contrib_interleaved_matmul_selfatt_valatt", "Self-attention: attention times values.", false, false);
  define("_contrib_interleaved_matmul_encdec_qk",
         "Scores of attention to an encoder: queries times keys / sqrt(width).", true, true);
  define("_contrib_interleaved_matmul_encdec_valatt", "Attention to an encoder: attention times values.", true, false);
  return true;
}();

}  // namespace
}  // namespace cohort
