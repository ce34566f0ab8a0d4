// SPDX-License-Identifier: Apache-2.0
#include "op/svm_output.hpp"

namespace cohort {
namespace {

void infer_shape(const SVMOutputAttrs &, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  if (!in[0].rank_known()) return;
  if (in[0].rank() < 1) throw Error(Code::kShape, "data: expected at least one axis, found ()", "data");
  unify(in[1], Shape(in[0].begin(), in[0].end() - 1), "label");
}

COHORT_OPERATOR(SVMOutput, SVMOutputAttrs)
    .doc("Returns data; its gradient is that of the one-against-all hinge loss of the scores.")
    .attr(&SVMOutputAttrs::margin, "margin", 1.0f, "The margin of the hinge loss.")
    .attr(&SVMOutputAttrs::regularization_coefficient, "regularization_coefficient", 1.0f, "Scale of the gradient.")
    .attr(&SVMOutputAttrs::use_linear, "use_linear", false,
          "Whether to use the linear hinge loss instead of the squared one.")
    .input("data", "Scores, (batch, classes).")
    .input("label", "Class indices.")
    .infer_shape(infer_shape)
    .inplace(0, 0)
    .gradient([](const SVMOutputAttrs &) { return Gradient::by_kernel({0}, {1}, {0}).without_head_grads(); })
    .loss();

}  // namespace
}  // namespace cohort
