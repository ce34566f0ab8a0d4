// SPDX-License-Identifier: Apache-2.0
#include "op/softmax_output.hpp"

namespace cohort {
namespace {

void infer_shape(const SoftmaxOutputAttrs &a, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  const Shape &data = in[0];
  Shape &label = in[1];
  if (!data.rank_known()) return;
  if (data.rank() < 1 || (a.multi_output && data.rank() < 2)) {
    throw Error(Code::kShape, text("data: expected at least ", a.multi_output ? 2 : 1, " axes, found ", data), "data");
  }
  if (label.rank_known() && label.rank() == data.rank()) {
    Shape same = label;
    if (same.merge(data)) {  // a label in the shape of data holds probabilities
      label = same;
      return;
    }
  }
  if (!a.multi_output) {
    unify(label, Shape(data.begin(), data.end() - 1), "label");
    return;
  }
  Shape flat{data[0], 1}, cut{data[0]}, kept = data;
  for (int axis = 2; axis < data.rank(); ++axis) {
    flat[1] = flat[1] == Shape::kUnknown || data[axis] == Shape::kUnknown ? Shape::kUnknown : flat[1] * data[axis];
  }
  std::vector<int64_t> rest(data.begin(), data.end());
  rest.erase(rest.begin() + 1);
  cut = Shape(rest);
  kept[1] = 1;
  if (label.rank_known()) {
    if (label.merge(flat) || label.merge(cut) || label.merge(kept)) return;
    throw Error(Code::kShape, text("label: expected ", flat, ", ", cut, " or ", kept, ", found ", label), "label");
  }
  label = flat;
}

COHORT_OPERATOR(SoftmaxOutput, SoftmaxOutputAttrs)
    .alias("Softmax")
    .doc("Softmax; its gradient is that of the cross entropy with label, regardless of the head gradient.")
    .attr(&SoftmaxOutputAttrs::grad_scale, "grad_scale", 1.0f, "Scale of the gradient.")
    .attr(&SoftmaxOutputAttrs::ignore_label, "ignore_label", -1.0f,
          "With use_ignore, samples with this label get no gradient.")
    .attr(&SoftmaxOutputAttrs::multi_output, "multi_output", false, "Whether the softmax is along axis 1.")
    .attr(&SoftmaxOutputAttrs::use_ignore, "use_ignore", false, "Whether ignore_label is used.")
    .attr(&SoftmaxOutputAttrs::preserve_shape, "preserve_shape", false, "Whether the softmax is along the last axis.")
    .choice(&SoftmaxOutputAttrs::normalization, "normalization",
            {{"batch", SoftmaxOutputAttrs::kBatch},
             {"null", SoftmaxOutputAttrs::kNull},
             {"valid", SoftmaxOutputAttrs::kValid}},
            SoftmaxOutputAttrs::kNull,
            "The divisor of the gradient: the number of labels, none, or the number of labels not ignored.")
    .attr(&SoftmaxOutputAttrs::out_grad, "out_grad", false, "Whether the gradient is multiplied by the head gradient.")
    .attr(&SoftmaxOutputAttrs::smooth_alpha, "smooth_alpha", 0.0f, "Amount of label smoothing.")
    .range(0.0f, 1.0f)
    .input("data", "Scores of the classes.")
    .input("label", "Class indices, or probabilities in the shape of data.")
    .infer_shape(infer_shape)
    .inplace(0, 0)
    .gradient([](const SoftmaxOutputAttrs &a) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      g.of = {0};
      g.head_grads = a.out_grad;
      g.inputs = {1};
      g.outputs = {0};
      return g;
    })
    .loss();

}  // namespace
}  // namespace cohort
