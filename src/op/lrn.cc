// SPDX-License-Identifier: Apache-2.0
#include "op/lrn.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(LRN, LrnAttrs)
    .doc("Divides each element by a power of the mean square of its neighbours on the channel axis.")
    .attr(&LrnAttrs::alpha, "alpha", 1e-4f, "Factor of the mean square.")
    .attr(&LrnAttrs::beta, "beta", 0.75f, "The power of the mean square.")
    .attr(&LrnAttrs::knorm, "knorm", 2.0f, "Added to the mean square.")
    .required(&LrnAttrs::nsize, "nsize",
              "The number of neighbouring channels, itself included; an even number sums over one channel less.")
    .range(1)
    .shown_as("int (non-negative)")
    .input("data", "(batch, channels, height, width).")
    .infer_shape([](const LrnAttrs &, Shapes &in, Shapes &out) {
      unify(in[0], out[0], "data");
      if (in[0].rank_known() && in[0].rank() != 4) {
        throw Error(Code::kShape, text("data: expected 4 axes, found ", in[0]), "data");
      }
      unify(out[0], in[0], "output");
    })
    .same_float()
    .gradient(Gradient::by_kernel({0}, {0}))
    .names_only_input();

}  // namespace
}  // namespace cohort
