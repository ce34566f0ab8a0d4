// SPDX-License-Identifier: Apache-2.0
#include "op/regression_output.hpp"

namespace cohort {
namespace {

// The label's shape may differ from data's if both have the same number of samples and of elements.
void infer_shape(const RegressionOutputAttrs &, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  unify(out[0], in[0], "output");
  const Shape &data = in[0];
  Shape &label = in[1];
  if (!data.rank_known()) return;
  if (!label.rank_known()) {
    if (data.rank() != 2 || data[1] != Shape::kUnknown) {  // otherwise data may still turn out to have one column
      label = data.rank() == 2 && data[1] == 1 ? Shape{data[0]} : data;
    }
  } else if (!label.known()) {
    if (label.rank() == data.rank()) unify(label, data, "label");
    if (label.rank() == 1 && data.rank() == 2 && data[1] == 1) unify(label, Shape{data[0]}, "label");
  } else if (data.known() &&
             (label.rank() == 0 || data.rank() == 0 || label[0] != data[0] || label.size() != data.size()) &&
             label != data) {
    throw Error(Code::kShape, text("label: expected ", data, ", found ", label), "label");
  }
}

OpBuilder<RegressionOutputAttrs> regression_output(const std::string &name, const char *doc) {
  OpBuilder<RegressionOutputAttrs> op(name.c_str());
  op.alias(("_sparse_" + name).c_str())
      .doc(doc)
      .attr(&RegressionOutputAttrs::grad_scale, "grad_scale", 1.0f, "Scale of the gradient.")
      .input("data", "Predictions, any shape.")
      .input("label", "Target values, as many per sample as data has.")
      .infer_shape(infer_shape)
      .inplace(0, 0)
      .gradient(Gradient::by_kernel({0}, {1}, {0}).without_head_grads())
      .loss();
  return op;
}

[[maybe_unused]] const bool defined = [] {
  regression_output("LinearRegressionOutput",
                    "Returns data; its gradient is that of half the squared difference from label.");
  regression_output("LogisticRegressionOutput",
                    "The logistic function; its gradient is that of the cross entropy with label.");
  regression_output("MAERegressionOutput", "Returns data; its gradient is that of the absolute difference from label.");
  return true;
}();

}  // namespace
}  // namespace cohort
