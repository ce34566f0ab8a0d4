// SPDX-License-Identifier: Apache-2.0
#include "op/group_norm.hpp"

namespace cohort {
namespace {

void infer_shape(const GroupNormAttrs &a, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  if (!in[0].rank_known()) return;
  if (in[0].rank() < 3) {
    throw Error(Code::kShape, text("data: expected at least 3 axes, found ", in[0]), "data");
  }
  const int64_t channels = in[0][1];
  if (a.num_groups > 0 && channels != Shape::kUnknown && channels % a.num_groups != 0) {
    throw Error(Code::kShape, text("data: expected a multiple of ", a.num_groups, " channels on axis 1, found ", in[0]),
                "data");
  }
  const int64_t groups = a.num_groups == 0 ? channels : a.num_groups;
  unify(in[1], Shape{groups}, "gamma");
  unify(in[2], in[1], "beta");
  if (a.num_groups == 0 && channels == Shape::kUnknown) in[0][1] = in[2][0];
  unify(out[1], Shape{in[0][0], in[1][0]}, "mean");
  unify(out[2], out[1], "std");
}

OpBuilder<GroupNormAttrs> norm(const char *name, const char *doc, const char *spread) {
  OpBuilder<GroupNormAttrs> op(name);
  op.doc(doc)
      .outputs([](const GroupNormAttrs &) { return 3; },
               [](const GroupNormAttrs &a) { return a.output_mean_var ? 3 : 1; })
      .output_names([spread](const GroupNormAttrs &) {
        return std::vector<std::string>{"output", "mean", spread};
      })
      .infer_shape(infer_shape)
      .same_float()
      .gradient(Gradient::by_kernel({0, 1, 2}, {0, 1}, {1, 2}));
  return op;
}

[[maybe_unused]] const bool defined = [] {
  norm("InstanceNorm", "Normalises each channel of each sample, then scales by gamma and adds beta.", "var")
      .input("data", "(batch, channels, ...), at least three axes.")
      .input("gamma", "Scale, (channels,).")
      .input("beta", "Offset, (channels,).")
      .attr(&GroupNormAttrs::eps, "eps", 1e-3f, "Added to the variance.")
      .check([](GroupNormAttrs &a) {
        a.num_groups = 0;
        a.output_mean_var = false;
      });
  norm("GroupNorm", "Normalises groups of channels of each sample, then scales by gamma and adds beta.", "std")
      .input("data", "(batch, channels, ...), at least three axes.")
      .input("gamma", "Scale, one per group.")
      .input("beta", "Offset, one per group.")
      .attr(&GroupNormAttrs::num_groups, "num_groups", 1, "The number of groups; divides the channels.")
      .range(1, 1 << 30)
      .attr(&GroupNormAttrs::eps, "eps", 1e-5f, "Added to the variance.")
      .attr(&GroupNormAttrs::output_mean_var, "output_mean_var", false, "Whether mean and std are outputs.");
  return true;
}();

}  // namespace
}  // namespace cohort
