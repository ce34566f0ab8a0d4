// SPDX-License-Identifier: Apache-2.0
#include "op/dropout.hpp"

namespace cohort {
namespace {

Gradient gradient() { return Gradient::by_kernel({0}).beside_forward(); }

COHORT_OPERATOR(Dropout, DropoutAttrs)
    .alias("_npx_dropout")
    .doc("In training, sets random elements to zero and scales up the others.")
    .attr(&DropoutAttrs::p, "p", 0.5f, "Probability with which an element is dropped.")
    .range(0.0f, 1.0f)
    .choice(&DropoutAttrs::mode, "mode", {{"always", DropoutAttrs::kAlways}, {"training", DropoutAttrs::kTraining}},
            DropoutAttrs::kTraining, "Whether to drop only in training, or always.")
    .attr(&DropoutAttrs::axes, "axes", Tuple(), "Axes along which elements are dropped together.")
    .ignored("cudnn_off", "boolean or None", "0", "Ignored.")
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
