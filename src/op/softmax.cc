// SPDX-License-Identifier: Apache-2.0
#include "op/softmax.hpp"

#include <algorithm>

#include "op/dtype_words.hpp"

namespace cohort {
namespace {

void infer_shape(const SoftmaxAttrs &a, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  if (!in[0].rank_known()) return;
  const int axis = normalize_axis(a.axis, std::max(in[0].rank(), 1), "axis");  // a scalar is treated as a row of one
  if (in.size() == 1) return;
  std::vector<int64_t> rest(in[0].begin(), in[0].end());
  if (!rest.empty()) rest.erase(rest.begin() + axis);
  unify(in[1], Shape(rest), "length");
}

void infer_dtype(const SoftmaxAttrs &a, Dtypes &in, Dtypes &out) {
  if (a.dtype != Dtype::kNone) {
    unify(out[0], a.dtype, "output");
    return;
  }
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
}

Gradient gradient(std::vector<int> inputs) { return Gradient::by_kernel({0}, std::move(inputs), {0}); }

void infer_cross_entropy_shape(const NoAttrs &, Shapes &in, Shapes &out) {
  if (in[0].rank_known() || in[1].rank_known()) {
    unify(in[0], Shape::of_rank(2), "data");
    unify(in[1], Shape{in[0][0]}, "label");
    if (in[0][0] == Shape::kUnknown) in[0][0] = in[1][0];
  }
  unify(out[0], Shape{1}, "output");
}

// The common part of softmax and its variants.
OpBuilder<SoftmaxAttrs> normalised(const char *name, const char *doc, const char *use_length_doc) {
  OpBuilder<SoftmaxAttrs> op(name);
  op.doc(doc)
      .attr(&SoftmaxAttrs::axis, "axis", -1, "The axis; negative counts from the last.")
      .attr(&SoftmaxAttrs::temperature, "temperature", std::nullopt, "Divides data before the exponential; None: 1.")
      .choice(&SoftmaxAttrs::dtype, "dtype",
              dtype_words({Dtype::kNone, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64}), Dtype::kNone,
              "Type of the output; None: that of data.")
      .attr(&SoftmaxAttrs::use_length, "use_length", false, use_length_doc)
      .shown_as("boolean or None")
      .input("data", "Any shape; a scalar is a row of one.")
      .infer_shape(infer_shape)
      .infer_dtype(infer_dtype)
      .inplace(0, 0)
      .gradient(gradient({}))
      .backward_inplace(0, 0);
  return op;
}

[[maybe_unused]] const auto kSoftmax =
    normalised("softmax", "Exponentials normalised to sum to one along an axis.", "Whether there is an input length.")
        .alias("_npx_softmax")
        .input_if(
            "length", [](const SoftmaxAttrs &a) { return a.use_length; },
            "Number of valid elements along axis; the shape of data without that axis.")
        .gradient(
            [](const SoftmaxAttrs &a) { return gradient(a.use_length ? std::vector<int>{1} : std::vector<int>{}); })
        .names_only_input();

[[maybe_unused]] const auto kLogSoftmax =
    normalised("log_softmax", "The logarithm of softmax.", "Ignored.").alias("_npx_log_softmax").names_only_input();

[[maybe_unused]] const auto kSoftmin = normalised("softmin", "Softmax of the negative of data.", "Ignored.");

COHORT_OPERATOR(SoftmaxActivation, SoftmaxActivationAttrs)
    .doc("Softmax over the channels, or over the last axis.")
    .choice(&SoftmaxActivationAttrs::mode, "mode",
            {{"channel", SoftmaxActivationAttrs::kChannel}, {"instance", SoftmaxActivationAttrs::kInstance}},
            SoftmaxActivationAttrs::kInstance, "channel: along axis 1; instance: along the last axis, as in MXNet.")
    .input("data", "At least one axis; with mode channel, two.")
    .infer_shape([](const SoftmaxActivationAttrs &a, Shapes &in, Shapes &out) {
      infer_same_shape(Attrs(), in, out);
      const int least = a.mode == SoftmaxActivationAttrs::kChannel ? 2 : 1;
      if (!in[0].known() || in[0].rank() >= least) return;
      throw Error(Code::kShape, text("data: expected at least ", least, " axes, found ", in[0]), "data");
    })
    .inplace(0, 0)
    .gradient(gradient({}))
    .backward_inplace(0, 0);

COHORT_OPERATOR(softmax_cross_entropy, NoAttrs)
    .doc("The sum of the cross entropies of the rows of data.")
    .input("data", "Scores, (rows, classes).")
    .input("label", "Class indices, (rows,).")
    .infer_shape(infer_cross_entropy_shape)
    .gradient([](const NoAttrs &) {
      return Gradient::by_kernel({0}, {0, 1});
    });

}  // namespace
}  // namespace cohort
