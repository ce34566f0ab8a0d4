// SPDX-License-Identifier: Apache-2.0
// The problem that the kernels of softmax, softmin, log_softmax and SoftmaxActivation solve: over (outer, cols,
// inner), along cols, in double if any array is of double, else in float.
#pragma once

#include <string>

#include "device/kernel.hpp"
#include "op/softmax.hpp"

namespace cohort {

struct SoftmaxProblem {
  int64_t outer, cols, inner;
  double scale = 1;  // factor of the data: sign / temperature
  bool log, uses_length = false;
  Dtype from, to;  // types of data and output

  int64_t count() const { return outer * cols * inner; }
  bool in_double() const { return from == Dtype::kFloat64 || to == Dtype::kFloat64; }
};

// `op` is the forward operator and `data` the data of the forward pass, in both passes.
inline SoftmaxProblem softmax_problem(const StepSpec &spec, const std::string &op, const TensorSpec &data, Dtype to) {
  SoftmaxProblem p;
  const Shape shape = data.shape.rank() == 0 ? Shape{1} : data.shape;  // a scalar is a row of one
  p.from = data.dtype;
  p.to = to;
  p.log = op == "log_softmax";
  int axis;
  if (op == "SoftmaxActivation") {
    const bool channel = spec.attrs_as<SoftmaxActivationAttrs>().mode == SoftmaxActivationAttrs::kChannel;
    axis = channel ? 1 : shape.rank() - 1;
  } else {
    const auto &a = spec.attrs_as<SoftmaxAttrs>();
    axis = normalize_axis(a.axis, shape.rank(), op.c_str());
    p.scale = (op == "softmin" ? -1 : 1) / a.temperature.value_or(1.0);
    p.uses_length = a.use_length && op == "softmax";
  }
  p.outer = shape.size(0, axis);
  p.cols = shape[axis];
  p.inner = shape.size(axis + 1, shape.rank());
  return p;
}

}  // namespace cohort
