// SPDX-License-Identifier: Apache-2.0
#include "op/fully_connected.hpp"

#include "op/linear.hpp"

namespace cohort {
namespace {

void infer_shape(const FullyConnectedAttrs &a, Shapes &in, Shapes &out) {
  Shape &data = in[0];
  int64_t features = Shape::kUnknown;
  if (data.rank_known()) {
    if (data.rank() < 1) throw Error(Code::kShape, "data: expected at least one axis, found ()", "data");
    Shape result;
    if (a.flatten) {
      features = 1;
      for (int axis = 1; axis < data.rank(); ++axis) {
        features =
            data[axis] == Shape::kUnknown || features == Shape::kUnknown ? Shape::kUnknown : features * data[axis];
      }
      result = Shape{data[0], a.num_hidden};
    } else {
      features = data[data.rank() - 1];
      result = data;
      result[data.rank() - 1] = a.num_hidden;
    }
    unify(out[0], result, "output");
    const int shared = a.flatten ? 1 : data.rank() - 1;
    for (int axis = 0; axis < shared; ++axis) {
      if (data[axis] == Shape::kUnknown) data[axis] = out[0][axis];
    }
  }
  unify(in[1], Shape{a.num_hidden, features}, "weight");
  if (!a.no_bias) unify(in[2], Shape{a.num_hidden}, "bias");
}

COHORT_OPERATOR(FullyConnected, FullyConnectedAttrs)
    .alias("_sparse_FullyConnected")
    .alias("_npx_fully_connected")
    .doc("Applies a linear transformation: data times the transposed weight, plus bias.")
    .required(&FullyConnectedAttrs::num_hidden, "num_hidden", "Number of outputs per sample.")
    .range(1)
    .attr(&FullyConnectedAttrs::no_bias, "no_bias", false, "Whether there is no bias.")
    .attr(&FullyConnectedAttrs::flatten, "flatten", true,
          "Whether to flatten all axes of data except the first into one.")
    .input("data", "One row for each sample, (batch, features), or with more axes, see flatten.")
    .input("weight", "Weights, (num_hidden, features).")
    .input_if("bias", has_bias<FullyConnectedAttrs>, "Bias, (num_hidden,).")
    .infer_shape(infer_shape)
    .flops([](const FullyConnectedAttrs &, const Shapes &in, const Shapes &) {
      return 2 * double(in[0].size()) * double(in[1][0]);
    })
    .gradient(linear_gradient<FullyConnectedAttrs>)
    .linear_layer([](const FullyConnectedAttrs &a) {
      auto with_bias = std::make_shared<FullyConnectedAttrs>(a);
      with_bias->no_bias = false;
      // Without flatten: the last axis, whatever the rank.
      return LinearLayer{a.flatten ? 1 : -1, !a.no_bias, Attrs(with_bias)};
    })
    .narrow();

}  // namespace
}  // namespace cohort
