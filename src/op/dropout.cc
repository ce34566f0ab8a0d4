// SPDX-License-Identifier: Apache-2.0
#include "op/dropout.hpp"

namespace cohort {
namespace {

Gradient gradient() {
  Gradient g;
  g.kind = Gradient::Kind::kKernel;
  g.of = {0};
  g.with_forward = true;
  return g;
}

COHORT_OPERATOR(Dropout, DropoutAttrs)
    .alias("_npx_dropout")
    .doc("Sets elements to zero at random in training and scales the others up.")
    .attr(&DropoutAttrs::p, "p", 0.5f, "Probability of an element to be dropped.")
    .range(0.0f, 1.0f)
    .choice(&DropoutAttrs::mode, "mode", {{"always", DropoutAttrs::kAlways}, {"training", DropoutAttrs::kTraining}},
            DropoutAttrs::kTraining, "Whether inference drops, too.")
    .attr(&DropoutAttrs::axes, "axes", Tuple(), "Axes along which elements are dropped together.")
    .ignored("cudnn_off", "boolean or None", "0", "No meaning here.")
    .input("data", "Any shape.")
    .same_shape()
    .inplace(0, 0)
    .follows()
    .gradient(gradient())
    .backward_inplace(0, 0)
    .random()
    .names_only_input();

}  // namespace
}  // namespace cohort
