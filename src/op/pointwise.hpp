// SPDX-License-Identifier: Apache-2.0
// Point-wise operators: the functors of pointwise_math.hpp for their forward and backward passes. The operators are
// registered from these rules, which kernels of all backends and the plan's fusion also read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "op/op.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {

// x op scalar. If the output is an integer type, the scalar is truncated.
struct ScalarAttrs {
  double scalar;
  bool is_int;
};

struct ClipAttrs {
  float a_min, a_max;
};

struct HardSigmoidAttrs {
  float alpha, beta;
};

struct SmoothL1Attrs {
  float scalar;
};

// One application of a functor: its operands a, b, c as indices into a kernel's inputs (-1: none), and its numbers.
struct PointwiseCall {
  PointwiseCode code;
  int a = -1, b = -1, c = -1;
  double s = 0, t = 0;
};

struct PointwiseRule {
  enum class Form {
    kElementwise,  // all operands have the output's shape
    kBroadcast,    // operands broadcast to the output's shape
  };
  std::string name, backward_name;
  Form form;
  int num_inputs;
  PointwiseCall forward;                // operands are the operator's inputs
  std::vector<PointwiseCall> backward;  // one per gradient; operands are the inputs of the backward kernel
  Gradient gradient;
  void (*numbers)(const void *attrs, double *s, double *t);  // null: none

  // The call with the numbers of a node: attrs is its attribute struct. `index` counts the entries of gradient.of.
  PointwiseCall forward_call(const void *attrs) const { return with_numbers(forward, attrs); }
  PointwiseCall backward_call(const void *attrs, int index) const {
    return with_numbers(backward[size_t(index)], attrs);
  }

 private:
  PointwiseCall with_numbers(PointwiseCall call, const void *attrs) const;
};

// All rules, and the rule named after an operator or "_backward_NAME"; null if the operator is not point-wise.
const std::vector<std::unique_ptr<PointwiseRule>> &pointwise_rules();
const PointwiseRule *find_pointwise_rule(const std::string &name);

// Calls for an ActivationAttrs::Type (activation.hpp): on data; on head gradient and output (softsign: data).
PointwiseCall activation_call(int type);
PointwiseCall activation_gradient_call(int type);

// Whether the node can be one instruction of a fused kernel (fused_pointwise.hpp), provided that all its inputs have
// the shape and dtype of its output, which the caller checks. Covers these rules and activations. *call receives the
// instruction; its operands are the node's inputs.
bool fusible(const Op &op, const Attrs &attrs, PointwiseCall *call);
// Likewise for gradient `index` (an entry of Gradient::of) of a node's backward step: operands are the inputs of the
// backward kernel (see Gradient). The caller handles pass-through gradients.
bool fusible_backward(const Op &op, const Attrs &attrs, int index, PointwiseCall *call);

}  // namespace cohort
