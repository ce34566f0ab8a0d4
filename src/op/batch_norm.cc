// SPDX-License-Identifier: Apache-2.0
#include "op/batch_norm.hpp"

#include "op/fold_batch_norm.hpp"

namespace cohort {
namespace {

void infer_shape(const BatchNormAttrs &a, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  if (!in[0].rank_known()) return;
  int64_t &length = in[0][normalize_axis(a.axis, in[0].rank(), "axis")];
  Shape channels{length};
  static const char *const kNames[] = {"", "gamma", "beta", "moving_mean", "moving_var", "mean", "var"};
  for (size_t i = 1; i < 5; ++i) unify(in[i], channels, kNames[i]), channels = in[i];
  for (size_t i = 1; i < 3; ++i) unify(out[i], channels, kNames[i + 4]), channels = out[i];
  if (length == Shape::kUnknown) length = channels[0];
}

// Statistics and parameters of 16-bit data are float32 (EXE-15).
void infer_dtype(const BatchNormAttrs &, Dtypes &in, Dtypes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  if (in[0] == Dtype::kNone) return;
  const Dtype statistics = in[0] == Dtype::kFloat16 || in[0] == Dtype::kBfloat16 ? Dtype::kFloat32 : in[0];
  for (size_t i = 1; i < 5; ++i) unify(in[i], statistics, text("input ", i).c_str());
  for (size_t i = 1; i < 3; ++i) unify(out[i], statistics, text("output ", i).c_str());
}

OpBuilder<BatchNormAttrs> norm(const char *name, const char *doc, double eps) {
  OpBuilder<BatchNormAttrs> op(name);
  op.follows();
  op.doc(doc)
      .attr(&BatchNormAttrs::eps, "eps", eps, "Added to the variance.")
      .attr(&BatchNormAttrs::momentum, "momentum", 0.9f, "Weight of the old value in the moving statistics.")
      .attr(&BatchNormAttrs::fix_gamma, "fix_gamma", true,
            "Whether gamma counts as 1 and is not trained. The backward pass of training then sets the array to 1, "
            "whether frozen or not; forward passes do not write it.")
      .attr(&BatchNormAttrs::use_global_stats, "use_global_stats", false,
            "Whether training also uses the moving statistics.")
      .attr(&BatchNormAttrs::output_mean_var, "output_mean_var", false,
            "Whether mean and 1 / sqrt(var + eps) are outputs.")
      .input("data", "Any number of axes, one of them the channels.")
      .input("gamma", "Scale, one per channel.")
      .input("beta", "Offset, one per channel.")
      .aux("moving_mean", "Moving mean, one per channel.")
      .init("[\"zero\", {}]")
      .aux("moving_var", "Moving variance, one per channel.")
      .init("[\"one\", {}]")
      .outputs([](const BatchNormAttrs &) { return 3; },
               [](const BatchNormAttrs &a) { return a.output_mean_var ? 3 : 1; })
      .output_names([](const BatchNormAttrs &) {
        return std::vector<std::string>{"output", "mean", "var"};
      })
      .infer_shape(infer_shape)
      .infer_dtype(infer_dtype)
      .gradient([](const BatchNormAttrs &a) {
        Gradient g;
        g.kind = Gradient::Kind::kKernel;
        g.of = {0, 1, 2};
        g.inputs = {0, 1};
        g.with_forward = true;
        if (a.fix_gamma) g.writes = {1};
        return g;
      })
      .mutates({3, 4});
  return op;
}

OpBuilder<BatchNormAttrs> &with_axis(OpBuilder<BatchNormAttrs> &op) {
  return op.attr(&BatchNormAttrs::axis, "axis", 1, "The axis of the channels; negative counts from the last.")
      .ignored("cudnn_off", "boolean", "0", "Ignored.")
      .ignored("min_calib_range", "float or None", "None", "Ignored.")
      .ignored("max_calib_range", "float or None", "None", "Ignored.");
}

[[maybe_unused]] const bool defined = [] {
  {
    auto op = norm("BatchNorm",
                   "Normalises each channel over the batch, then scales by gamma and adds beta. Training updates the "
                   "moving statistics if gamma, beta or an argument before the layer has a gradient; a frozen layer "
                   "keeps them. A BlockGrad after the layer does not freeze it.",
                   double(1e-3f));
    with_axis(op)
        .alias("BatchNorm_v1")
        .alias("_npx_batch_norm")
        .channel_scaling([](const BatchNormAttrs &a, bool has_bias) {
          return ChannelScaling{
              a.axis, "_fold_batch_norm",
              Attrs(std::make_shared<FoldBatchNormAttrs>(FoldBatchNormAttrs{a.eps, a.fix_gamma, has_bias}))};
        });
  }
  {
    auto op = norm("_contrib_BatchNormWithReLU", "BatchNorm followed by relu.", double(1e-3f));
    with_axis(op);
  }
  norm("_contrib_SyncBatchNorm",
       "BatchNorm of the channels on axis 1. When a group trains, the statistics are those of the whole batch over all "
       "devices.",
       double(1e-3f))
      .syncs_batch()
      .ignored("ndev", "int", "1", "Ignored.")
      .required(&BatchNormAttrs::key, "key", "A name of the layer; ignored.")
      .check([](BatchNormAttrs &a) { a.axis = 1, a.gives_variance = true; });
  return true;
}();

}  // namespace
}  // namespace cohort
