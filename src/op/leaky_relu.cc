// SPDX-License-Identifier: Apache-2.0
#include "op/leaky_relu.hpp"

namespace cohort {
namespace {

// gamma has one element, one per channel, or the shape of data.
void infer_shape(const LeakyReLUAttrs &a, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  if (out.size() > 1) unify(out[1], in[0], "mask");
  if (a.act_type != LeakyReLUAttrs::kPrelu || !in[0].rank_known()) return;
  const Shape channels{in[0].rank() > 1 ? in[0][1] : 1};
  if (!in[1].known()) unify(in[1], channels, "gamma");
  if (!in[1].known() || !in[0].known() || in[1] == in[0] || in[1].size() == 1) return;
  unify(in[1], channels, "gamma");
}

COHORT_OPERATOR(LeakyReLU, LeakyReLUAttrs)
    .alias("_npx_leaky_relu")
    .doc("Applies a rectifier with its own function of negative elements.")
    .choice(&LeakyReLUAttrs::act_type, "act_type",
            {{"elu", LeakyReLUAttrs::kElu},
             {"gelu", LeakyReLUAttrs::kGelu},
             {"leaky", LeakyReLUAttrs::kLeaky},
             {"prelu", LeakyReLUAttrs::kPrelu},
             {"rrelu", LeakyReLUAttrs::kRrelu},
             {"selu", LeakyReLUAttrs::kSelu}},
            LeakyReLUAttrs::kLeaky, "The function for negative elements.")
    .attr(&LeakyReLUAttrs::slope, "slope", 0.25f, "Slope below zero of leaky, factor of elu.")
    .attr(&LeakyReLUAttrs::lower_bound, "lower_bound", 0.125f, "Smallest random slope of rrelu.")
    .attr(&LeakyReLUAttrs::upper_bound, "upper_bound", 0.334f, "Largest random slope of rrelu.")
    .input("data", "Any shape.")
    .names_only_input()
    .input_if(
        "gamma", [](const LeakyReLUAttrs &a) { return a.act_type == LeakyReLUAttrs::kPrelu; },
        "Slope of prelu: one element, one per channel (axis 1), or the shape of data.")
    .init("[\"Constant\", {\"value\": 0.25}]")
    .outputs([](const LeakyReLUAttrs &a) { return a.act_type == LeakyReLUAttrs::kRrelu ? 2 : 1; })
    .output_names([](const LeakyReLUAttrs &a) -> std::vector<std::string> {
      if (a.act_type != LeakyReLUAttrs::kRrelu) return {"output"};
      // The slope of each element: 1 above zero; below, in inference, the mean of the bounds.
      return {"output", "mask"};
    })
    .infer_shape(infer_shape)
    .inplace(0, 0)
    // With a non-negative slope, leaky's output has the sign of its data, so the gradient can read the output.
    .gradient([](const LeakyReLUAttrs &a) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      g.of = {0};
      if (a.act_type == LeakyReLUAttrs::kPrelu) {
        g.of = g.inputs = {0, 1};
      } else if (a.act_type == LeakyReLUAttrs::kRrelu) {
        g.outputs = {1};
      } else if (a.act_type == LeakyReLUAttrs::kLeaky && a.slope >= 0) {
        g.outputs = {0};
      } else {
        g.inputs = {0};
      }
      return g;
    })
    .backward_inplace(0, 0)
    .follows()
    .random([](const LeakyReLUAttrs &a) { return a.act_type == LeakyReLUAttrs::kRrelu; });

}  // namespace
}  // namespace cohort
