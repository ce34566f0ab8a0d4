// SPDX-License-Identifier: Apache-2.0
// Fuses trees of point-wise operators into one kernel: a point-wise step whose only reader is point-wise too is
// computed inside its reader, so that its result is never stored. For forward and backward steps, and for sums of two
// gradients.
#include <algorithm>
#include <map>
#include <utility>

#include "op/fused_pointwise.hpp"
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

constexpr size_t kMostInstructions = 128, kMostInputs = 16;

// A point-wise step as instructions, one for each wanted output; operands are indices of its inputs. Empty: not
// point-wise.
using Instructions = std::vector<PointwiseCall>;

// Steps to be fused into one: the last step, and steps read only within the tree.
struct Tree {
  std::vector<int> inputs;  // values
  std::vector<int> steps;   // in execution order
  size_t num_instructions = 0;
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

Instructions instructions_of(const Ir &ir, const IrStep &step) {
  Instructions calls;
  if (!step.op && step.kernel == kSumGradients && step.inputs.size() == 2 && same_tensors(ir, step)) {
    return {{PointwiseCode::kAdd, 0, 1}};
  }
  if (!step.op || step.inputs.empty() || !step.post.empty() || !same_tensors(ir, step)) return calls;
  for (size_t j = 0; j < step.outputs.size(); ++j) {
    if (step.outputs[j] < 0) continue;
    PointwiseCall call;
    const bool known = step.backward ? fusible_backward(*step.op, step.attrs, int(j), &call)
                                     : step.outputs.size() == 1 && fusible(*step.op, step.attrs, &call);
    if (!known) return {};
    calls.push_back(call);
  }
  return calls;
}

void add_input(int value, std::vector<int> *inputs) {
  if (std::find(inputs->begin(), inputs->end(), value) == inputs->end()) inputs->push_back(value);
}

Tree tree_of(const IrStep &step, const Instructions &calls) {
  Tree tree;
  tree.num_instructions = calls.size();
  for (const PointwiseCall &call : calls) {
    for (int operand : {call.a, call.b, call.c}) {
      if (operand >= 0) add_input(step.inputs[size_t(operand)], &tree.inputs);
    }
  }
  if (tree.inputs.empty()) tree.inputs = {step.inputs[0]};  // all operands are constant, but a kernel needs an input
  return tree;
}

// Merges `inner`, the tree of the step that produced `value`, into `outer`. Returns false if the result is too large.
bool join(Tree &inner, int value, Tree *outer) {
  std::vector<int> inputs = inner.inputs;
  for (int v : outer->inputs) {
    if (v != value) add_input(v, &inputs);
  }
  const size_t num_instructions = inner.num_instructions + outer->num_instructions;
  if (num_instructions > kMostInstructions || inputs.size() > kMostInputs) return false;
  outer->inputs = std::move(inputs);
  outer->num_instructions = num_instructions;
  // Independent, as neither reads the other.
  if (outer->steps.size() < inner.steps.size()) outer->steps.swap(inner.steps);
  outer->steps.insert(outer->steps.end(), inner.steps.begin(), inner.steps.end());
  inner = {};
  return true;
}

class PointwiseFusion {
 public:
  explicit PointwiseFusion(Ir &ir)
      : ir_(ir),
        uses_(ir.count_uses()),
        maker_(ir.values.size(), -1),
        number_(ir.values.size(), -1),
        instructions_(ir.steps.size()),
        trees_(ir.steps.size()) {}

  void run() {
    std::vector<bool> inside(ir_.steps.size(), false);  // part of another step's tree
    for (size_t s = 0; s < ir_.steps.size(); ++s) {
      const IrStep &step = ir_.steps[s];
      for (int v : step.outputs) {
        if (v >= 0) maker_[size_t(v)] = int(s);
      }
      instructions_[s] = instructions_of(ir_, step);
      if (instructions_[s].empty() || !has_kernel(step)) continue;
      Tree tree = tree_of(step, instructions_[s]);
      const std::vector<int> own_inputs = tree.inputs;
      for (int v : own_inputs) {
        const int m = private_maker(v, step);
        if (m < 0 || !join(trees_[size_t(m)], v, &tree)) continue;
        inside[size_t(m)] = true;
        ir_.drop_node_value(v);
      }
      tree.steps.push_back(int(s));
      trees_[s] = std::move(tree);
    }
    for (size_t s = 0; s < ir_.steps.size(); ++s) {
      if (!inside[s] && trees_[s].steps.size() > 1) fuse(trees_[s], &ir_.steps[s]);
    }
    ir_.drop_steps(inside);
  }

 private:
  // Whether the step's device has a fused kernel for the step's type.
  bool has_kernel(const IrStep &step) {
    const auto known =
        has_kernel_.emplace(std::make_pair(step.device, ir_.values[size_t(step.inputs[0])].spec.dtype), false);
    if (known.second) {
      IrStep fused;
      fused.kernel = "_fused_pointwise";
      fused.device = step.device;
      fused.inputs = step.inputs;
      fused.outputs = step.outputs;
      known.first->second = ir_.has_kernel(fused);
    }
    return known.first->second;
  }

  // The point-wise step whose result `value` only `reader` reads, or -1.
  int private_maker(int value, const IrStep &reader) const {
    const int m = maker_[size_t(value)];
    if (m < 0 || instructions_[size_t(m)].size() != 1 || uses_[size_t(value)] != 1) return -1;
    if (ir_.values[size_t(value)].alias >= 0 || ir_.values[size_t(value)].location != ValueLocation::kArena) return -1;
    const IrStep &step = ir_.steps[size_t(m)];
    if (step.running_sum) return -1;  // inside the next sum it would keep its addends alive until then
    const std::vector<int> &inputs = trees_[size_t(m)].inputs;  // they would be read later than now
    const bool may_wait = std::none_of(inputs.begin(), inputs.end(), [this](int v) { return ir_.changes(v); });
    return may_wait && step.backward == reader.backward && step.device == reader.device ? m : -1;
  }

  void fuse(const Tree &tree, IrStep *last) {
    auto attrs = std::make_shared<FusedPointwiseAttrs>();
    attrs->num_inputs = int(tree.inputs.size());
    int next = 0;
    for (int v : tree.inputs) number_[size_t(v)] = next++;
    for (int s : tree.steps) {
      const IrStep &step = ir_.steps[size_t(s)];
      if (&step != last) last->also += text(last->also.empty() ? "" : ", ", ir_.label_of(step));
      size_t made = 0;
      for (PointwiseCall call : instructions_[size_t(s)]) {
        for (int *operand : {&call.a, &call.b, &call.c}) {
          if (*operand >= 0) *operand = number_[size_t(step.inputs[size_t(*operand)])];
        }
        attrs->instructions.push_back(call);
        while (step.outputs[made] < 0) ++made;
        number_[size_t(step.outputs[made++])] = next++;
      }
    }
    last->outputs.erase(std::remove(last->outputs.begin(), last->outputs.end(), -1), last->outputs.end());
    for (int v : last->outputs) attrs->outputs.push_back(number_[size_t(v)]);
    last->kernel = "_fused_pointwise";
    last->attrs = Attrs(attrs);
    last->inputs = tree.inputs;
    last->like.clear();
    last->inplace.clear();
    for (size_t i = 0; i < last->inputs.size(); ++i) last->inplace.emplace_back(int(i), 0);
    last->forward_step = -1;
    last->elementwise = true;
  }

  Ir &ir_;
  const std::vector<int> uses_;                       // per value
  std::vector<int> maker_, number_;                   // per value: its step; its number in the tree being written
  std::vector<Instructions> instructions_;            // per step
  std::vector<Tree> trees_;                           // per step: the tree that ends with it
  std::map<std::pair<int, Dtype>, bool> has_kernel_;  // per device and type
};

}  // namespace

bool is_elementwise(const Op &op) { return op.pointwise && op.pointwise->form == PointwiseRule::Form::kElementwise; }

void fuse_pointwise(Ir &ir) { PointwiseFusion(ir).run(); }

}  // namespace cohort::plan
