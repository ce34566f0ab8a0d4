// SPDX-License-Identifier: Apache-2.0
#include "op/activation.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(Activation, ActivationAttrs)
    .alias("_npx_activation")
    .doc("Applies an activation function to each element.")
    .required_choice(&ActivationAttrs::act_type, "act_type",
                     {{"relu", ActivationAttrs::kRelu},
                      {"sigmoid", ActivationAttrs::kSigmoid},
                      {"softrelu", ActivationAttrs::kSoftrelu},
                      {"softsign", ActivationAttrs::kSoftsign},
                      {"tanh", ActivationAttrs::kTanh}},
                     "The activation function.")
    .input("data", "Any shape.")
    .same_shape()
    .inplace(0, 0)
    .activation([](const ActivationAttrs &a) { return int(a.act_type); })
    // Except for softsign, the gradient reads the output, so the output may overwrite data.
    .follows()
    .gradient([](const ActivationAttrs &a) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      g.of = {0};
      (a.act_type == ActivationAttrs::kSoftsign ? g.inputs : g.outputs) = {0};
      return g;
    })
    .backward_inplace(0, 0);

}  // namespace
}  // namespace cohort
