// SPDX-License-Identifier: Apache-2.0
// Turns nodes into steps. Operators that only reshape memory (views) become aliases without a step.
#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "device/kernel_table.hpp"
#include "plan/ir.hpp"
#include "plan/node_compiler.hpp"
#include "symbol/fused_layer.hpp"

namespace cohort::plan {

int Ir::add_alias(int of, const Shape &shape, bool blocks_gradient) {
  IrValue value;
  value.spec = values[size_t(of)].spec;
  value.spec.shape = shape;
  value.spec.layout = nullptr;
  value.alias = root(of);
  value.blocks_gradient = blocks_gradient || values[size_t(of)].blocks_gradient;
  value.device = values[size_t(of)].device;
  return add_value(std::move(value));
}

std::vector<int> Ir::count_uses() const {
  std::vector<int> uses(values.size(), 0);
  for (const IrStep &step : steps) {
    for (int v : step.inputs) {
      if (v >= 0) ++uses[size_t(root(v))];
    }
  }
  for (int v : heads) ++uses[size_t(root(v))];
  return uses;
}

void Ir::drop_steps(const std::vector<bool> &dropped) {
  std::vector<int> moved(steps.size(), -1);
  std::vector<IrStep> kept;
  size_t forward = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (dropped[i]) continue;
    moved[i] = int(kept.size());
    if (i < num_forward) ++forward;
    kept.push_back(std::move(steps[i]));
  }
  for (IrStep &step : kept) {
    if (step.forward_step >= 0) step.forward_step = moved[size_t(step.forward_step)];
  }
  for (Report &report : reports) {
    report.step = size_t(report.step) < moved.size() ? moved[size_t(report.step)] : int(kept.size()) - 1;
  }
  steps = std::move(kept);
  num_forward = forward;
}

StepSpec Ir::spec_of(const IrStep &step, const std::vector<int> &inputs) const {
  std::vector<TensorSpec> in, out;
  for (const int v : inputs) in.push_back(values[size_t(v)].spec);
  for (size_t j = 0; j < step.outputs.size(); ++j) {
    const int v = step.outputs[j];
    out.push_back(v >= 0 ? values[size_t(v)].spec : TensorSpec());
    if (v >= 0 || step.like.empty()) continue;
    out.back() = values[size_t(step.like[j])].spec;  // the kernel gets the shape of an output even if it is not wanted
    out.back().layout = nullptr;
  }
  StepSpec spec = StepSpec::of(step.kernel, step.attrs.pointer(), std::move(in), std::move(out), request->num_threads);
  for (size_t j = 0; j < step.outputs.size(); ++j) spec.wanted[j] = step.outputs[j] >= 0;
  spec.is_train = request->is_train;
  spec.keep_for_backward = step.keep_for_backward;
  spec.frozen = request->is_train && !request->always_updates_aux && !step.backward && !step.learns;
  if (step.op && step.op->syncs_batch) spec.num_replicas = request->num_replicas;
  const auto said = request->precisions.find(step.node);
  spec.tf32 = request->tf32 && (said == request->precisions.end() || said->second != Op::Precision::kOwn);
  spec.post = step.post;
  return spec;
}

const KernelTable &Ir::kernels(const IrStep &step) const { return request->devices[size_t(step.device)]->kernels(); }

bool Ir::has_kernel(const IrStep &step) const { return kernels(step).find(spec_of(step)) != nullptr; }

namespace {

// A result computed from an argument is outdated once a step has written that argument.
std::vector<bool> constants_of(const PlanRequest &request) {
  const Graph &graph = *request.graph;
  std::vector<bool> written(graph.nodes.size(), false), constants = request.constants;
  if (constants.empty()) return constants;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int v : graph.written_by(n, request.is_train ? PassKind::kTraining : PassKind::kInference))
      written[size_t(v)] = true;
    if (!request.with_backward) continue;
    for (const int v : graph.written_by(n, PassKind::kBackward)) written[size_t(v)] = true;
  }
  for (size_t n = 0; n < request.same_memory.size(); ++n) written[n] = written[n] || request.same_memory[n] >= 0;
  for (size_t i = 0; i < constants.size(); ++i) constants[i] = constants[i] && !written[size_t(graph.arguments[i])];
  return constants;
}

// Creates the steps and values of nodes. Each function returns the values of the node's outputs.
class IrBuilder {
 public:
  explicit IrBuilder(Ir *ir) : ir_(*ir) {}

  // `n`: index of the network's node. `is_whole`: `node` is that node itself, not one inside it.
  std::vector<int> add(const Node &node, int n, const std::vector<int> &inputs, const Shapes &shapes,
                       const Dtypes &dtypes, bool is_whole) {
    const auto spec_of = [&](int output) {
      TensorSpec spec;
      spec.shape = shapes[size_t(output)];
      spec.dtype = dtypes[size_t(output)];
      return spec;
    };
    if (node.op->view) {
      const bool blocks = node.op->gradient_of(node.parsed).kind == Gradient::Kind::kNone;
      return {ir_.add_alias(inputs[0], spec_of(0).shape, blocks)};
    }
    IrStep step;
    step.kernel = node.op->name;
    step.op = node.op;
    step.attrs = node.parsed;
    step.node = n;
    step.inputs = inputs;
    step.inplace = node.op->inplace;
    step.elementwise = is_elementwise(*node.op);
    step.keep_for_backward = ir_.request->gives_saved && ir_.steps.empty();  // the operator, not the copies behind it
    if (!is_whole) step.num_inside = int(inputs.size());
    for (int output = 0; output < node.num_outputs(); ++output) {
      IrValue value;
      value.spec = spec_of(output);
      if (is_whole) value.node = n, value.output = output;
      step.outputs.push_back(ir_.add_value(std::move(value)));
    }
    const PassKind pass = ir_.request->is_train ? PassKind::kTraining : PassKind::kInference;
    for (const int k : node.op->mutated(node.parsed, inputs.size(), pass))
      ir_.values[size_t(ir_.memory(inputs[size_t(k)]))].changes = true;
    ir_.steps.push_back(std::move(step));
    return ir_.steps.back().outputs;
  }

  std::vector<int> add_backward(const Node &node, int n, const std::vector<int> &inputs, const Shapes &shapes,
                                const Dtypes &dtypes) {
    IrStep step;
    step.kernel = "_backward_" + node.op->name;
    step.op = node.op;
    step.attrs = node.parsed;
    step.node = n;
    step.backward = true;
    step.inputs = inputs;
    for (size_t output = 0; output < shapes.size(); ++output) {
      const bool wanted = ir_.request->backward->wanted[output];
      IrValue value;
      value.spec.shape = shapes[output];
      value.spec.dtype = dtypes[output];
      if (!wanted) value.location = ValueLocation::kNowhere;
      step.like.push_back(ir_.add_value(std::move(value)));
      step.outputs.push_back(wanted ? step.like.back() : -1);
    }
    ir_.steps.push_back(std::move(step));
    return ir_.steps.back().outputs;
  }

  // Adds the steps inside a fused layer individually, so that later passes see them: constants are computed once, and
  // layouts pass through.
  std::vector<int> add_inside(const Node &node, int n, const std::vector<int> &inputs) {
    const NodeGraph &inside = static_cast<const NodeGraph &>(*node.op->subgraphs_of(node.parsed)[0]);
    const Graph &graph = inside.graph();
    std::vector<TensorSpec> specs;
    for (const int input : inputs) specs.push_back(ir_.values[size_t(input)].spec);
    Inferred inferred;
    infer_inside(inside, specs, node.name, &inferred);
    std::vector<std::vector<int>> values(graph.nodes.size());
    for (size_t i = 0; i < inputs.size(); ++i) values[size_t(inside.inputs()[i])] = {inputs[i]};
    const auto value_of = [&](const Graph::Input &input) { return values[size_t(input.node)][size_t(input.index)]; };
    for (size_t m = 0; m < graph.nodes.size(); ++m) {
      if (graph.nodes[m]->is_variable()) continue;
      std::vector<int> of_step;
      for (const Graph::Input &input : graph.inputs[m]) of_step.push_back(value_of(input));
      values[m] = add(*graph.nodes[m], n, of_step, inferred.shapes[m], inferred.dtypes[m], false);
    }
    std::vector<int> outputs;
    for (const Graph::Input &head : graph.heads) {
      IrValue &value = ir_.values[size_t(value_of(head))];
      if (value.alias < 0) value.node = n, value.output = int(outputs.size());
      outputs.push_back(value_of(head));
    }
    return outputs;
  }

 private:
  Ir &ir_;
};

}  // namespace

Ir build(const PlanRequest &request) {
  const Graph &graph = *request.graph;
  Ir ir;
  ir.request = &request;
  ir.constants = constants_of(request);
  ir.node_values.resize(graph.nodes.size());
  IrBuilder builder(&ir);
  int argument = 0, auxiliary = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = *graph.nodes[n];
    if (node.is_variable()) {
      IrValue value;
      value.spec.shape = request.inferred->shapes[n][0];
      value.spec.dtype = request.inferred->dtypes[n][0];
      value.location = graph.is_auxiliary[n] ? ValueLocation::kAuxiliary : ValueLocation::kArgument;
      value.index = graph.is_auxiliary[n] ? auxiliary++ : argument++;
      value.node = int(n);
      if (!request.same_memory.empty() && request.same_memory[n] >= 0 && request.same_memory[n] != int(n))
        value.memory = ir.node_values[size_t(request.same_memory[n])][0];
      ir.node_values[n] = {ir.add_value(std::move(value))};
      continue;
    }
    std::vector<int> inputs;
    for (const Graph::Input &input : graph.inputs[n]) {
      inputs.push_back(ir.node_values[size_t(input.node)][size_t(input.index)]);
    }
    const Shapes &shapes = request.inferred->shapes[n];
    const Dtypes &dtypes = request.inferred->dtypes[n];
    const bool opened = is_fused_layer(node) && !request.with_backward && !request.separate_nodes;
    ir.node_values[n] = request.backward ? builder.add_backward(node, int(n), inputs, shapes, dtypes)
                        : opened         ? builder.add_inside(node, int(n), inputs)
                                         : builder.add(node, int(n), inputs, shapes, dtypes, true);
  }
  ir.num_forward = ir.steps.size();
  for (const Graph::Input &head : graph.heads) {
    ir.heads.push_back(ir.node_values[size_t(head.node)][size_t(head.index)]);
  }
  return ir;
}

void place_outputs(Ir &ir) {
  const Graph &graph = *ir.request->graph;
  std::vector<IrStep> copies;
  for (size_t h = 0; h < ir.heads.size(); ++h) {
    const int value = ir.heads[h], root = ir.root(value);
    IrValue &source = ir.values[size_t(root)];
    if (source.location == ValueLocation::kArena) {
      source.location = ValueLocation::kOutput;
      source.index = int(h);
      continue;
    }
    // The output is the argument's own array (EXE-07).
    if (graph.nodes[size_t(graph.heads[h].node)]->is_variable()) continue;
    // A view of an argument, or an output listed twice, needs a copy, right after the node.
    IrValue output;
    output.spec = ir.values[size_t(value)].spec;
    output.location = ValueLocation::kOutput;
    output.index = int(h);
    output.device = source.device;
    IrStep copy;
    copy.kernel = "_copy";
    copy.attrs = Attrs(std::make_shared<NoAttrs>());
    copy.node = graph.heads[h].node;
    copy.device = source.device;
    copy.inputs = {value};
    copy.outputs = {ir.add_value(std::move(output))};
    ir.heads[h] = copy.outputs[0];
    copies.push_back(std::move(copy));
  }
  const auto by_node = [](const IrStep &a, const IrStep &b) { return a.node < b.node; };
  std::stable_sort(copies.begin(), copies.end(), by_node);
  std::vector<IrStep> steps;
  steps.reserve(ir.steps.size() + copies.size());
  std::merge(std::make_move_iterator(ir.steps.begin()), std::make_move_iterator(ir.steps.end()),
             std::make_move_iterator(copies.begin()), std::make_move_iterator(copies.end()), std::back_inserter(steps),
             by_node);
  ir.steps = std::move(steps);
  ir.num_forward = ir.steps.size();
}

}  // namespace cohort::plan
