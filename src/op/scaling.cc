// SPDX-License-Identifier: Apache-2.0
#include "op/scaling.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(_contrib_quadratic, QuadraticAttrs)
    .doc("a x^2 + b x + c")
    .attr(&QuadraticAttrs::a, "a", 0.0f, "Factor of the square.")
    .attr(&QuadraticAttrs::b, "b", 0.0f, "Factor of x.")
    .attr(&QuadraticAttrs::c, "c", 0.0f, "The value at 0.")
    .input("data", "Any shape.")
    .names_only_input()
    .same_shape()
    .inplace(0, 0)
    .gradient(Gradient::by_kernel({0}, {0}));

COHORT_OPERATOR(_contrib_div_sqrt_dim, NoAttrs)
    .doc("Divides by the square root of the length of the last axis. Integers are divided by the root rounded down.")
    .input("data", "At least one axis.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      infer_same_shape(Attrs(), in, out);
      if (in[0].rank_known() && in[0].rank() < 1) {
        throw Error(Code::kShape, text("data: expected at least one axis, found ", in[0]), "data");
      }
    })
    .inplace(0, 0)
    .gradient(Gradient::by_kernel({0}));

}  // namespace
}  // namespace cohort
