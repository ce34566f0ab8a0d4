// SPDX-License-Identifier: Apache-2.0
// Runs the passes in order, and derives the summary fields of the finished plan.
#include <algorithm>
#include <map>
#include <set>

#include "base/log.hpp"
#include "plan/cost.hpp"
#include "plan/ir.hpp"

namespace cohort {
namespace {

double estimate_ns(const plan::Ir &ir, const plan::IrStep &step) {
  const plan::Cost cost = plan::cost_of(ir, step);
  return estimate_step_ns(cost.flops, cost.bytes);
}

constexpr double kBriefNs = 20000;     // about twice the time to wake another thread
constexpr double kParallelNs = 3.0e6;  // of a pass: many short steps are worth the threads that one is not

WorkSize size_of_pass(const plan::Ir &ir, size_t begin, size_t end, bool may_be_brief) {
  double total = 0;
  bool splits = false;
  for (size_t s = begin; s < end; ++s) {
    const plan::IrStep &step = ir.steps[s];
    const plan::Cost cost = plan::cost_of(ir, step);
    total += estimate_step_ns(cost.flops, cost.bytes);
    splits = splits || is_worth_splitting(step.op, cost.flops, cost.bytes);
  }
  if (may_be_brief && total < kBriefNs) return WorkSize::kBrief;
  return splits || total >= kParallelNs ? WorkSize::kParallel : WorkSize::kSerial;
}

// An argument is complete after the last backward step that writes or reads its gradient, or reads its value, since
// several arguments may share a gradient computed in the array of one of them.
void order_gradients(Plan *plan) {
  std::map<int, size_t> done;
  for (size_t s = plan->num_forward; s < plan->steps.size(); ++s) {
    auto note = [&](int v, bool written) {
      if (v < 0) return;
      const Slot &slot = plan->slots[size_t(v)];
      const bool uses = slot.location == ValueLocation::kGradient || slot.location == ValueLocation::kArgument;
      const bool makes = slot.location == ValueLocation::kGradient && written;
      if (makes || (uses && done.count(slot.index))) done[slot.index] = s - plan->num_forward + 1;
    };
    for (int v : plan->steps[s].outputs) note(v, true);
    for (int v : plan->steps[s].inputs) note(v, false);
  }
  plan->gradient_order.assign(done.begin(), done.end());
  std::stable_sort(plan->gradient_order.begin(), plan->gradient_order.end(),
                   [](const auto &a, const auto &b) { return a.second < b.second; });
}

// Arguments that the network writes: an update's weights, a fixed gamma.
void find_written_arguments(const plan::Ir &ir, Plan *plan) {
  if (ir.request->backward) return;  // the caller knows: Application::mutated()
  const Graph &graph = *ir.request->graph;
  const PassKind forward = ir.request->is_train ? PassKind::kTraining : PassKind::kInference;
  for (const plan::IrStep &step : ir.steps) {
    if (!step.op || step.num_inside >= 0) continue;
    const std::vector<Graph::Input> &inputs = graph.inputs[size_t(step.node)];
    const Gradient gradient = step.backward ? step.op->gradient_of(step.attrs) : Gradient();
    for (const int input : step.backward ? gradient.writes : step.op->mutated(step.attrs, inputs.size(), forward)) {
      if (size_t(input) >= inputs.size()) continue;
      const auto argument =
          std::find(graph.arguments.begin(), graph.arguments.end(), graph.variable_of(inputs[size_t(input)]));
      if (argument == graph.arguments.end()) continue;
      (step.backward ? plan->written_backward : plan->written_forward)
          .push_back(int(argument - graph.arguments.begin()));
    }
  }
}

// Finds the values of a forward pass that backward reads.
void find_kept(const plan::Ir &ir, Plan *plan) {
  std::set<int> made, kept;
  const auto visit = [&](size_t begin, size_t end, const auto &fn) {
    for (size_t s = begin; s < end; ++s) fn(plan->steps[s]);
  };
  const auto note = [&](int v, std::set<int> *to) {
    if (v >= 0) to->insert(ir.root(v));
  };
  visit(0, plan->num_forward, [&](const PlanStep &step) {
    for (const int v : step.outputs) note(v, &made);
    note(step.saved, &made);
  });
  visit(plan->num_forward, plan->steps.size(), [&](const PlanStep &step) {
    for (const int v : step.inputs) note(v, &kept);
    note(step.saved, &kept);
  });
  for (const int v : kept) {
    if (made.count(v) == 0) continue;
    const Slot &slot = plan->slots[size_t(v)];
    if (slot.location == ValueLocation::kArena) plan->keeps_values = true;
    if (slot.location == ValueLocation::kOutput) plan->kept_outputs.push_back(slot.index);
  }
}

}  // namespace

Plan compile(const PlanRequest &request) {
  plan::Ir ir = plan::build(request);
  plan::assign_devices(ir);
  plan::place_outputs(ir);
  if (!request.separate_nodes) plan::fuse_before_gradient(ir);
  plan::lower_precision(ir);
  ir.num_forward = ir.steps.size();
  if (request.with_backward) {
    plan::add_gradients(ir);
  } else {
    ir.head_gradients.assign(ir.heads.size(), -1);
  }
  if (!request.separate_nodes) {
    plan::fuse_after_gradient(ir);
    plan::lower_to_bytes(ir);
    plan::drop_unused(ir);
    std::vector<double> costs;
    for (const plan::IrStep &step : ir.steps) costs.push_back(estimate_ns(ir, step));
    plan::schedule(ir, costs);
  }

  Plan plan;
  plan.narrow_nodes = ir.narrow_nodes;
  plan.stateful = std::any_of(ir.steps.begin(), ir.steps.end(),
                              [](const plan::IrStep &step) { return step.op && step.op->is_stateful(step.attrs); });
  plan.forward_size = size_of_pass(ir, 0, ir.num_forward, !plan.stateful);
  plan.backward_size = size_of_pass(ir, ir.num_forward, ir.steps.size(), !plan.stateful);
  plan::lower(ir, &plan);
  if (request.recompute && !request.separate_nodes) plan::recompute(ir, &plan);
  plan::assign_memory(ir, &plan);
  order_gradients(&plan);
  find_written_arguments(ir, &plan);
  find_kept(ir, &plan);
  plan.node_slots = ir.node_values;
  plan.head_slots = ir.heads;
  plan.head_gradient_slots = ir.head_gradients;
  return plan;
}

}  // namespace cohort
