// SPDX-License-Identifier: Apache-2.0
// Trees of point-wise operators become one kernel: a step whose only reader is point-wise, too, is computed inside its
// reader, so that its result never goes to memory. Forward and backward steps alike.
#include <algorithm>

#include "op/fused_pointwise.hpp"
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

constexpr size_t kMostInstructions = 128, kMostInputs = 16;

// A point-wise step as instructions; `inputs` are values of the Ir.
struct Tree {
  std::vector<int> inputs;
  std::vector<PointwiseCall> instructions;
  std::vector<int> outputs;  // numbered as FusedPointwiseAttrs has them
};

bool same_tensors(const Ir &ir, const IrStep &step) {
  const TensorSpec *first = nullptr;
  for (const std::vector<int> *list : {&step.inputs, &step.outputs}) {
    for (int v : *list) {
      if (v < 0) continue;
      const TensorSpec &spec = ir.values[size_t(v)].spec;
      if (!first) first = &spec;
      if (spec.shape != first->shape || spec.dtype != first->dtype) return false;
    }
  }
  return first != nullptr;
}

// False if the step cannot be part of a tree.
bool as_tree(const Ir &ir, const IrStep &step, Tree *tree) {
  if (!step.post.empty() || !same_tensors(ir, step)) return false;
  tree->inputs = step.inputs;
  if (step.kernel == "_fused_pointwise") {
    const FusedPointwiseAttrs &attrs = step.attrs.get<FusedPointwiseAttrs>();
    tree->instructions = attrs.instructions;
    tree->outputs = attrs.outputs;
    return true;
  }
  if (!step.op || step.inputs.empty()) return false;
  for (size_t j = 0; j < step.outputs.size(); ++j) {
    if (step.outputs[j] < 0) return false;
    PointwiseCall call;
    const bool known = step.backward ? fusible_backward(*step.op, step.attrs, int(j), &call)
                                     : step.outputs.size() == 1 && fusible(*step.op, step.attrs, &call);
    if (!known) return false;
    tree->outputs.push_back(int(step.inputs.size() + tree->instructions.size()));
    tree->instructions.push_back(call);
  }
  return true;
}

// `inner` makes the value that `outer` reads.
Tree join(const Tree &inner, int value, const Tree &outer) {
  Tree joined;
  joined.inputs = inner.inputs;
  for (int v : outer.inputs) {
    if (v != value && std::find(joined.inputs.begin(), joined.inputs.end(), v) == joined.inputs.end()) {
      joined.inputs.push_back(v);
    }
  }
  const int num_inputs = int(joined.inputs.size()), inner_size = int(inner.instructions.size());
  auto of_inner = [&](int operand) {  // inputs keep their numbers
    const int own = int(inner.inputs.size());
    return operand < own ? operand : num_inputs + operand - own;
  };
  auto of_outer = [&](int operand) {
    const int own = int(outer.inputs.size());
    if (operand < 0) return operand;
    if (operand >= own) return num_inputs + inner_size + operand - own;
    const int v = outer.inputs[size_t(operand)];
    if (v == value) return of_inner(inner.outputs[0]);
    return int(std::find(joined.inputs.begin(), joined.inputs.end(), v) - joined.inputs.begin());
  };
  auto add = [&](const Tree &tree, auto renumber) {
    for (PointwiseCall call : tree.instructions) {
      call.a = renumber(call.a);
      call.b = renumber(call.b);
      call.c = renumber(call.c);
      joined.instructions.push_back(call);
    }
  };
  add(inner, of_inner);
  add(outer, of_outer);
  for (int v : outer.outputs) joined.outputs.push_back(of_outer(v));
  return joined;
}

}  // namespace

bool is_elementwise(const Op &op) {
  const PointwiseRule *rule = find_pointwise_rule(op.name);
  return rule && rule->form == PointwiseRule::Form::kElementwise;
}

void fuse_pointwise(Ir &ir) {
  std::vector<int> maker(ir.values.size(), -1);
  for (size_t s = 0; s < ir.steps.size(); ++s) {
    for (int v : ir.steps[s].outputs) {
      if (v >= 0) maker[size_t(v)] = int(s);
    }
  }
  const std::vector<int> uses = ir.count_uses();
  std::vector<bool> dropped(ir.steps.size(), false);
  for (size_t s = 0; s < ir.steps.size(); ++s) {
    Tree tree;
    const Device &device = *ir.request->devices[size_t(ir.steps[s].device)];
    if (!device.find_kernel("_fused_pointwise") || !as_tree(ir, ir.steps[s], &tree)) continue;
    bool joined_any = false;
    for (bool again = true; again;) {
      again = false;
      for (int v : tree.inputs) {
        const int m = maker[size_t(v)];
        if (m < 0 || dropped[size_t(m)] || uses[size_t(v)] != 1 || ir.values[size_t(v)].alias >= 0 ||
            ir.values[size_t(v)].place != Place::kArena || ir.steps[size_t(m)].backward != ir.steps[s].backward ||
            ir.steps[size_t(m)].device != ir.steps[s].device || ir.steps[size_t(m)].outputs.size() != 1) {
          continue;
        }
        Tree inner;
        if (!as_tree(ir, ir.steps[size_t(m)], &inner)) continue;
        Tree whole = join(inner, v, tree);
        if (whole.instructions.size() > kMostInstructions || whole.inputs.size() > kMostInputs) continue;
        tree = std::move(whole);
        dropped[size_t(m)] = true;
        for (std::vector<int> &values : ir.node_values) std::replace(values.begin(), values.end(), v, -1);
        joined_any = again = true;
        break;
      }
    }
    if (!joined_any) continue;
    IrStep &step = ir.steps[s];
    auto attrs = std::make_shared<FusedPointwiseAttrs>();
    attrs->num_inputs = int(tree.inputs.size());
    attrs->instructions = tree.instructions;
    attrs->outputs = tree.outputs;
    step.kernel = "_fused_pointwise";
    step.attrs = Attrs(attrs);
    step.inputs = tree.inputs;
    step.inplace.clear();
    for (size_t i = 0; i < step.inputs.size(); ++i) step.inplace.emplace_back(int(i), 0);
    step.forward_step = -1;
    step.elementwise = true;
  }
  ir.drop_steps(dropped);
}

}  // namespace cohort::plan
