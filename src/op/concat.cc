// SPDX-License-Identifier: Apache-2.0
#include "op/concat.hpp"

namespace cohort {
namespace {

void infer_shape(const ConcatAttrs &a, Shapes &in, Shapes &out) {
  int rank = out[0].rank_known() ? out[0].rank() : -1;
  for (const Shape &s : in) {
    if (s.rank_known()) rank = s.rank();
  }
  if (rank < 0) return;
  const int axis = normalize_axis(a.dim, rank, "dim");
  Shape shared = Shape::of_rank(rank);  // common to all: every axis but the joined one
  const auto without_axis = [axis](Shape s) {
    if (s.rank_known() && axis < s.rank()) s[axis] = Shape::kUnknown;
    return s;
  };
  unify(shared, without_axis(out[0]), "output");
  for (size_t i = 0; i < in.size(); ++i) unify(shared, without_axis(in[i]), text("arg", i).c_str());
  int64_t sum = 0;
  int num_unknown = 0;
  size_t missing = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    unify(in[i], shared, text("arg", i).c_str());
    if (in[i][axis] == Shape::kUnknown) {
      ++num_unknown;
      missing = i;
    } else {
      sum += in[i][axis];
    }
  }
  unify(out[0], shared, "output");
  if (num_unknown == 0) {
    shared[axis] = sum;
    unify(out[0], shared, "output");
  } else if (num_unknown == 1 && out[0][axis] != Shape::kUnknown) {
    if (out[0][axis] < sum) {
      throw Error(Code::kShape, text("output: expected at least ", sum, " on axis ", axis, ", found ", out[0]),
                  "output");
    }
    in[missing][axis] = out[0][axis] - sum;
  }
}

COHORT_OPERATOR(Concat, ConcatAttrs)
    .alias("concat")
    .alias("_sparse_concat")
    .alias("_rnn_param_concat")
    .doc("Joins arrays along one axis; their lengths on all other axes are equal.")
    .attr(&ConcatAttrs::dim, "dim", 1, "The axis; negative counts from the last.")
    .variadic("arg", "num_args", "The arrays to join.")
    .infer_shape(infer_shape)
    .follows()
    .gradient([](const ConcatAttrs &) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      return g;
    });

}  // namespace
}  // namespace cohort
