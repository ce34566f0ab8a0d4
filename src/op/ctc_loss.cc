// SPDX-License-Identifier: Apache-2.0
#include "op/ctc_loss.hpp"

namespace cohort {
namespace {

using A = CtcLossAttrs;

void infer_shape(const A &a, Shapes &in, Shapes &out) {
  if (in[0].rank_known() && in[0].rank() != 3) {
    throw Error(Code::kShape, text("data: expected 3 axes, found ", in[0]), "data");
  }
  if (!in[0].rank_known()) return;
  const int64_t length = in[0][0], batch = in[0][1];
  unify(in[1], Shape{batch, Shape::kUnknown}, "label");
  if (length != Shape::kUnknown && in[1][1] > length) {
    throw Error(Code::kShape, text("label: expected at most ", length, " labels, the length of data, found ", in[1]),
                "label");
  }
  size_t next = 2;
  if (a.use_data_lengths) unify(in[next++], Shape{batch}, "data_lengths");
  if (a.use_label_lengths) unify(in[next], Shape{batch}, "label_lengths");
  unify(out[0], Shape{batch}, "output");
}

// Labels and lengths may have any type.
void infer_dtype(const A &, Dtypes &in, Dtypes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  if (in[0] != Dtype::kNone && !dtype_is_float(in[0])) {
    throw Error(Code::kDtype, text("data: expected a floating type, found ", in[0]), "data");
  }
  for (size_t i = 1; i < in.size(); ++i) {
    if (in[i] == Dtype::kNone) in[i] = in[0];
  }
}

COHORT_OPERATOR(CTCLoss, CtcLossAttrs)
    .alias("ctc_loss")
    .alias("_contrib_CTCLoss")
    .alias("_contrib_ctc_loss")
    .doc("Connectionist temporal classification: the loss of label sequences that are not aligned in time.")
    .attr(&A::use_data_lengths, "use_data_lengths", false,
          "Whether data_lengths is given; otherwise all of data is used.")
    .attr(&A::use_label_lengths, "use_label_lengths", false,
          "Whether label_lengths is given; otherwise padding marks the end of labels.")
    .choice(&A::blank_last, "blank_label", {{"first", false}, {"last", true}}, false,
            "The blank class: the first (labels are padded with 0) or the last (padded with -1).")
    .input("data", "Scores before softmax, (length, batch, classes).")
    .input("label", "Classes, (batch, label length).")
    .input_if(
        "data_lengths", [](const A &a) { return a.use_data_lengths; }, "The number of valid steps of each sample.")
    .input_if(
        "label_lengths", [](const A &a) { return a.use_label_lengths; }, "The number of valid labels of each sample.")
    .output_names([](const A &) { return std::vector<std::string>{"output0"}; })
    .infer_shape(infer_shape)
    .infer_dtype(infer_dtype)
    .gradient(Gradient::by_kernel({0}).beside_forward());

}  // namespace
}  // namespace cohort
