// SPDX-License-Identifier: Apache-2.0
#include "op/sparse_regularizer.hpp"

namespace cohort {
namespace {

using A = SparseRegularizerAttrs;

COHORT_OPERATOR(IdentityAttachKLSparseReg, SparseRegularizerAttrs)
    .doc("Returns data; its gradient pulls the mean of each column towards sparseness_target.")
    .attr(&A::sparseness_target, "sparseness_target", 0.1f, "The target mean, for data from 0 to 1.")
    .range(0.0f, 1.0f)
    .attr(&A::penalty, "penalty", 0.001f, "Factor of the added gradient.")
    .attr(&A::momentum, "momentum", 0.9f, "Weight of the old value in the moving mean.")
    .range(0.0f, 1.0f)
    .input("data", "(batch, columns, ...).")
    .aux("moving_avg", "Moving mean, one per column.")
    .init("[\"zero\", {}]")
    .infer_shape([](const A &, Shapes &in, Shapes &out) {
      unify(in[0], out[0], "data");
      unify(out[0], in[0], "output");
      if (!in[0].rank_known()) return;
      if (in[0].rank() < 2) {
        throw Error(Code::kShape, text("data: expected at least two axes, found ", in[0]), "data");
      }
      Shape columns{in[0][1]};
      unify(in[1], columns, "moving_avg");
      in[0][1] = out[0][1] = in[1][0];
    })
    .infer_dtype([](const A &, Dtypes &in, Dtypes &out) {
      unify(in[0], Dtype::kFloat32, "data");
      unify(in[1], Dtype::kFloat32, "moving_avg");
      unify(out[0], Dtype::kFloat32, "output");
    })
    .mutates({1})
    .gradient(Gradient::by_kernel({0}).beside_forward())
    .adds_penalty()
    .names_only_input();

}  // namespace
}  // namespace cohort
