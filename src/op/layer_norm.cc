// SPDX-License-Identifier: Apache-2.0
#include "op/layer_norm.hpp"

namespace cohort {
namespace {

void infer_shape(const LayerNormAttrs &a, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  if (!in[0].rank_known()) return;
  const int axis = normalize_axis(a.axis, in[0].rank(), "axis");
  unify(in[1], Shape{in[0][axis]}, "gamma");
  unify(in[2], in[1], "beta");
  if (in[0][axis] == Shape::kUnknown) in[0][axis] = in[2][0];
  Shape reduced = in[0];
  reduced[axis] = 1;
  unify(out[1], reduced, "mean");
  unify(out[2], reduced, "std");
}

COHORT_OPERATOR(LayerNorm, LayerNormAttrs)
    .alias("_npx_layer_norm")
    .doc("Normalises along one axis, then scales by gamma and adds beta.")
    .attr(&LayerNormAttrs::axis, "axis", -1, "The axis; negative counts from the last.")
    .attr(&LayerNormAttrs::eps, "eps", 1e-5f, "Added to the variance.")
    .attr(&LayerNormAttrs::output_mean_var, "output_mean_var", false, "Whether mean and std are outputs.")
    .input("data", "Any shape of at least one axis.")
    .input("gamma", "Scale, (length of the axis,).")
    .input("beta", "Offset, (length of the axis,).")
    .outputs([](const LayerNormAttrs &) { return 3; },
             [](const LayerNormAttrs &a) { return a.output_mean_var ? 3 : 1; })
    .output_names([](const LayerNormAttrs &) {
      return std::vector<std::string>{"output", "mean", "std"};
    })
    .infer_shape(infer_shape)
    .gradient([](const LayerNormAttrs &) {
      return Gradient::by_kernel({0, 1, 2}, {0, 1}, {1, 2});
    });

}  // namespace
}  // namespace cohort
