// SPDX-License-Identifier: Apache-2.0
#include "op/dot.hpp"

namespace cohort {

DotExtent dot_extent(const DotAttrs &a, const Shape &lhs, const Shape &rhs, bool batched) {
  const int l = lhs.rank(), r = rhs.rank();
  DotExtent e;
  if (batched) {
    e.batch = lhs.size(0, l - 2);
    e.m = lhs[a.transpose_a ? l - 1 : l - 2];
    e.k = lhs[a.transpose_a ? l - 2 : l - 1];
    e.n = rhs[a.transpose_b ? r - 2 : r - 1];
    return e;
  }
  e.k = a.transpose_a ? lhs[0] : lhs[l - 1];
  e.m = a.transpose_a ? lhs.size(1, l) : lhs.size(0, l - 1);
  e.n = a.transpose_b ? rhs.size(0, r - 1) : rhs.size(1, r);
  return e;
}

namespace {

void check_inner(const char *op, const Shape &lhs, const Shape &rhs, int64_t left, int64_t right) {
  if (left == right || left == Shape::kUnknown || right == Shape::kUnknown) return;
  throw Error(Code::kShape, text(op, ": lhs ", lhs, " sums over a length of ", left, ", rhs ", rhs, " over ", right),
              "rhs");
}

void infer_dot(const DotAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known() || !in[1].rank_known()) return;
  const int l = in[0].rank(), r = in[1].rank();
  if (l < 1 || r < 1) {
    throw Error(Code::kShape, text("dot: expected at least one axis, found ", in[0], " and ", in[1]), "lhs");
  }
  check_inner("dot", in[0], in[1], in[0][a.transpose_a ? 0 : l - 1], in[1][a.transpose_b ? r - 1 : 0]);
  std::vector<int64_t> result(in[0].begin() + (a.transpose_a ? 1 : 0), in[0].end() - (a.transpose_a ? 0 : 1));
  result.insert(result.end(), in[1].begin() + (a.transpose_b ? 0 : 1), in[1].end() - (a.transpose_b ? 1 : 0));
  if (result.empty()) result.push_back(1);
  unify(out[0], Shape(result), "output");
}

void infer_batch_dot(const DotAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known() || !in[1].rank_known()) return;
  const int rank = in[0].rank();
  if (rank < 3 || in[1].rank() != rank) {
    throw Error(Code::kShape,
                text("batch_dot: expected as many axes in both, at least 3, found ", in[0], " and ", in[1]), "lhs");
  }
  Shape batch = Shape::of_rank(rank), l = in[0], r = in[1];
  for (int axis = 0; axis < rank - 2; ++axis) {
    batch[axis] = l[axis] != Shape::kUnknown ? l[axis] : r[axis];
    if (r[axis] != Shape::kUnknown && batch[axis] != r[axis]) {
      throw Error(Code::kShape, text("batch_dot: rhs: expected ", batch[axis], " on axis ", axis, ", found ", r),
                  "rhs");
    }
  }
  check_inner("batch_dot", l, r, l[a.transpose_a ? rank - 2 : rank - 1], r[a.transpose_b ? rank - 1 : rank - 2]);
  batch[rank - 2] = l[a.transpose_a ? rank - 1 : rank - 2];
  batch[rank - 1] = r[a.transpose_b ? rank - 2 : rank - 1];
  unify(out[0], batch, "output");
}

template <bool kBatched>
double flops(const DotAttrs &a, const Shapes &in, const Shapes &) {
  const DotExtent e = dot_extent(a, in[0], in[1], kBatched);
  return 2 * double(kBatched ? e.batch : 1) * double(e.m) * double(e.n) * double(e.k);
}

OpBuilder<DotAttrs> product(const char *name, const char *doc) {
  OpBuilder<DotAttrs> op(name);
  op.doc(doc)
      .attr(&DotAttrs::transpose_a, "transpose_a", false, "Whether lhs is transposed.")
      .attr(&DotAttrs::transpose_b, "transpose_b", false, "Whether rhs is transposed.")
      .ignored("forward_stype", "{None, 'csr', 'default', 'row_sparse'}", "None", "Ignored: arrays are dense.")
      .input("lhs", "The left factor.")
      .input("rhs", "The right factor.")
      .gradient(Gradient::by_kernel({0, 1}, {0, 1}))
      .narrow();
  return op;
}

[[maybe_unused]] const bool defined = [] {
  product("dot", "The product of two arrays, summed over the last axis of lhs and the first of rhs.")
      .alias("_sparse_dot")
      .infer_shape(infer_dot)
      .flops(flops<false>);
  product("batch_dot", "Matrix products over the last two axes.")
      .alias("_npx_batch_dot")
      .infer_shape(infer_batch_dot)
      .flops(flops<true>);
  return true;
}();

}  // namespace
}  // namespace cohort
