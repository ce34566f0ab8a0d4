// SPDX-License-Identifier: Apache-2.0
#include "op/l2_normalization.hpp"

namespace cohort {
namespace {

using A = L2NormalizationAttrs;

COHORT_OPERATOR(L2Normalization, L2NormalizationAttrs)
    .doc("Divides by the Euclidean norm.")
    .attr(&A::eps, "eps", 1e-10f, "Added to the sum of squares.")
    .choice(&A::mode, "mode", {{"channel", A::kChannel}, {"instance", A::kInstance}, {"spatial", A::kSpatial}},
            A::kInstance,
            "Axes of the norm: axis 1 (channel), all axes but the first (instance), all from axis 2 on (spatial).")
    .input("data", "(batch, ...); three axes or more for channel and spatial.")
    .names_only_input()
    .infer_shape([](const A &a, Shapes &in, Shapes &out) {
      unify(in[0], out[0], "data");
      unify(out[0], in[0], "output");
      const int least = a.mode == A::kInstance ? 1 : 3;
      if (in[0].rank_known() && in[0].rank() < least) {
        throw Error(Code::kShape, text("data: expected at least ", least, " axes for this mode, found ", in[0]),
                    "data");
      }
    })
    .same_float()
    .gradient(Gradient::by_kernel({0}, {0}));

}  // namespace
}  // namespace cohort
