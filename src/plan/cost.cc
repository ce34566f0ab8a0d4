// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.hpp"

#include <algorithm>
#include <vector>

#include "plan/ir.hpp"

namespace cohort {
namespace {

// Operations of a forward step of `op` with these shapes of inputs and outputs; 0 if the operator does not say.
double forward_flops(const Op &op, const Attrs &attrs, const Shapes &in, const Shapes &out) {
  return op.flops ? op.flops(attrs, in, out) : 0;
}

// Operations of its backward step, with the shapes of the forward step: a product as large as the forward step's for
// each of the first two gradients, those of the data and the weight, that is wanted.
double backward_flops(const Op &op, const Attrs &attrs, const Shapes &in, const Shapes &out,
                      const std::vector<bool> &wanted) {
  const auto end = wanted.begin() + std::min<std::ptrdiff_t>(2, std::ptrdiff_t(wanted.size()));
  return double(std::count(wanted.begin(), end, true)) * forward_flops(op, attrs, in, out);
}

}  // namespace

FactorType factors_of(Dtype dtype, const Context &context, bool tf32) {
  if (dtype == Dtype::kBfloat16 || (dtype == Dtype::kFloat16 && !context.on_host())) return FactorType::kNarrow;
  return dtype == Dtype::kFloat32 && tf32 ? FactorType::kTf32 : FactorType::kWide;
}

double estimate_step_ns(double flops, double bytes) { return 80 + bytes / 16 + flops / 32; }

bool is_worth_splitting(const Op *op, double flops, double bytes) {
  // Operators without products may take far longer than a copy: a curve for each element, or a sort.
  const double ns_per_byte = !op || op->flops ? 1.0 / 16 : plan::is_elementwise(*op) ? 0.5 : 1;
  return bytes * ns_per_byte + flops / 32 >= 4.0e5;
}

namespace plan {
namespace {

// The shapes of all inputs, of which those without a gradient are unknown.
Shapes with_inputs_without_gradient(const Op &op, const Attrs &attrs, Shapes with) {
  const std::vector<int> of = op.gradient_of(attrs).of;
  if (of.size() != with.size()) return with;  // variadic: all have one
  Shapes all(op.input_names(attrs, int(with.size())).size());
  for (size_t i = 0; i < of.size(); ++i) {
    if (size_t(of[i]) < all.size()) all[size_t(of[i])] = std::move(with[i]);
  }
  return all;
}

}  // namespace

Cost cost_of(const Ir &ir, const IrStep &step) {
  Cost cost;
  for (const int v : step.inputs) cost.bytes += v >= 0 ? double(ir.values[size_t(v)].spec.bytes()) : 0;
  for (const int v : step.outputs) cost.bytes += v >= 0 ? double(ir.values[size_t(v)].spec.bytes()) : 0;
  const bool alone = ir.request->backward && step.backward;
  const IrStep &forward = step.forward_step >= 0 ? ir.steps[size_t(step.forward_step)] : step;
  if (!step.op || !step.op->flops || (step.backward && step.forward_step < 0 && !alone)) return cost;
  Shapes in, out;
  // Gradients have the shapes of the forward step's inputs.
  for (const int v : alone ? step.like : forward.inputs) in.push_back(ir.values[size_t(v)].spec.shape);
  if (alone) {
    in = with_inputs_without_gradient(*step.op, step.attrs, std::move(in));
    if (step.op->input_names(step.attrs, int(in.size())).size() != in.size()) return cost;
    out.resize(size_t(step.op->num_outputs(step.attrs)));
    step.op->infer_shape(step.attrs, in, out);
  }
  for (size_t j = 0; !alone && j < forward.outputs.size(); ++j) {
    const int made = forward.outputs[j], v = made >= 0 || forward.like.empty() ? made : forward.like[j];
    out.push_back(v >= 0 ? ir.values[size_t(v)].spec.shape : Shape());
  }
  if (step.backward) {
    std::vector<bool> wanted;
    for (const int v : step.outputs) wanted.push_back(v >= 0);
    cost.flops = backward_flops(*step.op, step.attrs, in, out, wanted);
  } else {
    cost.flops = forward_flops(*step.op, step.attrs, in, out);
  }
  return cost;
}

}  // namespace plan
}  // namespace cohort
