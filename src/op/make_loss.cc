// SPDX-License-Identifier: Apache-2.0
#include "op/make_loss.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(MakeLoss, MakeLossAttrs)
    .doc("Returns data as a loss: its gradient is grad_scale, regardless of the head gradient.")
    .attr(&MakeLossAttrs::grad_scale, "grad_scale", 1.0f, "The gradient of each element, before normalisation.")
    .attr(&MakeLossAttrs::valid_thresh, "valid_thresh", 0.0f, "Elements above this are valid.")
    .choice(&MakeLossAttrs::normalization, "normalization",
            {{"batch", MakeLossAttrs::kBatch}, {"null", MakeLossAttrs::kNull}, {"valid", MakeLossAttrs::kValid}},
            MakeLossAttrs::kNull,
            "The divisor of the gradient: the number of rows (all axes but the last), none, or the number of valid "
            "elements.")
    .input("data", "The loss, any shape.")
    .same_shape()
    .inplace(0, 0)
    .gradient([](const MakeLossAttrs &a) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      g.of = {0};
      g.head_grads = false;
      if (a.normalization == MakeLossAttrs::kValid) g.outputs = {0};
      return g;
    })
    .loss()
    .names_only_input();

COHORT_OPERATOR(make_loss, NoAttrs)
    .alias("_sparse_make_loss")
    .doc("Returns data as a loss: its gradient is 1, regardless of the head gradient.")
    .input("data", "The loss, any shape.")
    .output_names([](const NoAttrs &) { return std::vector<std::string>{"loss"}; })
    .same_shape()
    .inplace(0, 0)
    .gradient([](const NoAttrs &) { return Gradient::by_kernel({0}).without_head_grads(); })
    .loss();

COHORT_OPERATOR(BlockGrad, NoAttrs)
    .alias("stop_gradient")
    .alias("_sparse_stop_gradient")
    .doc("Returns data and stops its gradient.")
    .input("data", "Any shape.")
    .same_shape()
    .inplace(0, 0)
    .loss();

}  // namespace
}  // namespace cohort
