// SPDX-License-Identifier: Apache-2.0
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

// A backward step computes one product as large as the forward step's for each wanted gradient among its first two
// outputs, those of data and weight.
double num_products(const IrStep &step) {
  if (!step.backward) return 1;
  double count = 0;
  for (size_t j = 0; j < step.outputs.size() && j < 2; ++j) count += step.outputs[j] >= 0 ? 1 : 0;
  return count;
}

}  // namespace

Cost cost_of(const Ir &ir, const IrStep &step) {
  Cost cost;
  for (const int v : step.inputs) cost.bytes += v >= 0 ? double(ir.values[size_t(v)].spec.bytes()) : 0;
  for (const int v : step.outputs) cost.bytes += v >= 0 ? double(ir.values[size_t(v)].spec.bytes()) : 0;
  const IrStep &forward = step.forward_step >= 0 ? ir.steps[size_t(step.forward_step)] : step;
  if (!step.op || !step.op->flops || (step.backward && step.forward_step < 0)) return cost;
  Shapes in, out;
  for (const int v : forward.inputs) in.push_back(ir.values[size_t(v)].spec.shape);
  for (size_t j = 0; j < forward.outputs.size(); ++j) {
    const int made = forward.outputs[j], v = made >= 0 || forward.like.empty() ? made : forward.like[j];
    out.push_back(v >= 0 ? ir.values[size_t(v)].spec.shape : Shape());
  }
  cost.flops = step.op->flops(step.attrs, in, out) * num_products(step);
  return cost;
}

}  // namespace cohort::plan
