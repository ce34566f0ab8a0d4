// SPDX-License-Identifier: Apache-2.0
// Removes work whose results are not read: whole steps, and single outputs of other steps.
#include <algorithm>

#include "plan/ir.hpp"

namespace cohort::plan {

// Goes from the last step to the first, so that steps read only by dropped steps are dropped as well.
void drop_unused(Ir &ir) {
  std::vector<int> uses = ir.count_uses();
  std::vector<bool> dropped(ir.steps.size(), false), has_backward(ir.steps.size(), false);
  for (size_t s = ir.steps.size(); s-- > 0;) {
    IrStep &step = ir.steps[s];
    const auto is_unused = [&](int v) {
      return v < 0 || (uses[size_t(v)] == 0 && ir.values[size_t(v)].location == ValueLocation::kArena);
    };
    const bool changes_inputs = step.op && !step.backward && !step.op->mutated(step.attrs, step.inputs.size()).empty();
    dropped[s] =
        !changes_inputs && !has_backward[s] && std::all_of(step.outputs.begin(), step.outputs.end(), is_unused);
    if (dropped[s]) {
      for (int v : step.inputs) --uses[size_t(ir.root(v))];
      continue;
    }
    if (step.forward_step >= 0) has_backward[size_t(step.forward_step)] = true;
    if (step.like.empty()) step.like = step.outputs;
    // Kernels always compute the first output of a forward step.
    for (size_t j = step.backward ? 0 : 1; j < step.outputs.size(); ++j) {
      if (is_unused(step.outputs[j])) step.outputs[j] = -1;
    }
  }
  ir.drop_steps(dropped);
}

}  // namespace cohort::plan
