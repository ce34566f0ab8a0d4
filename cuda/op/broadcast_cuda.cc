// SPDX-License-Identifier: Apache-2.0
// The point-wise rules on operands that broadcast; for integers, all rules.
#include "cuda/cuda_layout.hpp"
#include "cuda/op/strided_cuda.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using namespace strided;

std::unique_ptr<Kernel> make_rule(StepSpec &spec) {
  const PointwiseRule &rule = *find_pointwise_rule(spec.op);
  auto kernel = std::make_unique<StridedCuda>();
  if (spec.op == rule.name) {
    const StridedCall source = source_of(spec, rule.forward_call(spec.attrs.get()), spec.outputs[0].shape, 0);
    kernel->add(spec, spec.outputs[0].dtype, source, 0);
    return kernel;
  }
  for (size_t i = 0; i < rule.backward.size(); ++i) {
    if (!spec.wanted.empty() && !spec.wanted[i]) continue;
    const PointwiseCall call = rule.backward_call(spec.attrs.get(), int(i));
    kernel->add(spec, spec.outputs[i].dtype, source_of(spec, call, spec.inputs[0].shape, i), int(i));
  }
  return kernel;
}

const bool registered = [] {
  for (const auto &rule : pointwise_rules()) {
    // Those without broadcasting have kernels of their own for floating types (pointwise_cuda.cu).
    const auto add = [](const std::string &op) {
      cuda_kernels().add(op, flat<make_rule>).named("strided").preference(-1).any_layout();
    };
    add(rule->name);
    if (!rule->backward.empty()) add(rule->backward_name);
  }
  return true;
}();

}  // namespace
}  // namespace cohort
