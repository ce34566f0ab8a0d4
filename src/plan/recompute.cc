// SPDX-License-Identifier: Apache-2.0
// Recomputes forward values right before backward reads them instead of keeping them, which frees memory in between.
// This applies to cheap values whose inputs are kept until then, or can themselves be recomputed cheaply from kept
// values. Cheap are norms, whose statistics are kept (device/restoring.hpp), and everything except matrix products.
#include <algorithm>
#include <unordered_map>

#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

// Runs the kernel of an earlier step once more, or its restorer, with no more threads than the kernel was made for and
// has scratch for.
class Again final : public Kernel {
 public:
  Again(const PlanStep &of, int num_threads)
      : of_(of.restorer ? *of.restorer : *of.kernel), num_threads_(num_threads) {}
  void run(const Args &args, const Lane &lane) const override {
    of_.run(args, {std::min(lane.num_threads, num_threads_), lane.stream, lane.recorder});
  }
  bool replays() const override { return of_.replays(); }

 private:
  const Kernel &of_;
  const int num_threads_;
};

class RecomputePass {
 public:
  RecomputePass(Ir &ir, Plan *plan) : ir_(ir), plan_(*plan), made_again_(plan->steps.size()) {}

  void run() {
    find_makers_and_readers();
    for (size_t s = 0; s < plan_.num_forward; ++s) {
      if (is_cheap(s)) make_again(s);
    }
    insert();
    plan_.slots.resize(ir_.values.size());
  }

 private:
  // Records for each value the forward step that produces it, the number of forward readers, and the backward readers
  // in order.
  void find_makers_and_readers() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const bool forward = s < plan_.num_forward;
      for (const int v : plan_.steps[s].inputs) {
        if (v < 0) continue;
        if (forward)
          ++num_forward_readers_[ir_.root(v)];
        else
          readers_[ir_.root(v)].push_back(s);
      }
      for (const int v : plan_.steps[s].outputs) {
        if (forward && v >= 0) makers_[ir_.root(v)] = s;
      }
    }
  }

  bool is_in_arena(int value) const {
    return value >= 0 && ir_.values[size_t(ir_.root(value))].location == ValueLocation::kArena;
  }

  bool is_kept(int value) const {
    if (!is_in_arena(value) || ir_.changes(value)) return false;
    const auto readers = readers_.find(ir_.root(value));
    return readers != readers_.end() && !readers->second.empty();
  }

  // Whether the value is available when backward step `reader` starts.
  bool is_there(int value, size_t reader) const {
    return is_kept(value) && (!ir_.request->backward_once || readers_.at(ir_.root(value)).back() >= reader);
  }

  bool is_whole(int value) const { return value >= 0 && ir_.root(value) == value; }

  bool is_cheap(size_t s) const {
    const PlanStep &step = plan_.steps[s];
    if (step.outputs.empty() || !is_whole(step.outputs[0]) || !is_kept(step.outputs[0])) return false;
    const size_t reader = readers_.at(step.outputs[0]).front(), bytes = bytes_of(step.outputs[0]);
    size_t bytes_between = 0;
    const bool can = can_run_again(step, [&](int v) {
      if (is_there(v, reader)) return true;
      if (!is_made_of_kept(v, step, reader)) return false;
      bytes_between += bytes_of(v);
      return true;
    });
    // With in-place reuse, the output takes the place of one of the recomputed inputs.
    return can && bytes_between <= (step.inplace.empty() ? bytes : 2 * bytes);
  }

  // A value read only by `step` and not in the backward pass, whose inputs are kept.
  bool is_made_of_kept(int value, const PlanStep &step, size_t reader) const {
    if (!is_whole(value) || !is_in_arena(value) || readers_.count(value) > 0 || ir_.changes(value)) return false;
    const auto maker = makers_.find(value);
    if (maker == makers_.end() || num_forward_readers_.at(value) != 1) return false;
    const PlanStep &from = plan_.steps[maker->second];
    return from.outputs[0] == value && from.device == step.device &&
           can_run_again(from, [&](int v) { return is_there(v, reader); });
  }

  // `can_be_had(input)`: whether an input that the step would read is available.
  template <typename CanBeHad>
  bool can_run_again(const PlanStep &step, CanBeHad &&can_be_had) const {
    if (step.scratch >= 0 && bytes_of(step.scratch) >= bytes_of(step.outputs[0])) return false;
    if (step.restorer) return can_be_had(step.inputs[0]);
    return step.repeatable && step.outputs.size() == 1 && !step.inputs.empty() &&
           std::all_of(step.inputs.begin(), step.inputs.end(), can_be_had);
  }

  size_t bytes_of(int value) const { return ir_.values[size_t(value)].spec.bytes(); }

  void make_again(size_t s) {
    const int before = plan_.steps[s].outputs[0];
    const std::vector<size_t> readers = readers_[before];
    std::vector<PlanStep> &steps = made_again_[readers[0]];
    PlanStep last = again(s);
    for (int &v : last.inputs) {
      if (v < 0 || is_kept(v)) continue;
      steps.push_back(again(makers_.at(v)));
      v = steps.back().outputs[0];
    }
    readers_[before].clear();  // values that it is computed from stay as they are
    for (const size_t reader : readers) {
      for (int &v : plan_.steps[reader].inputs) {
        if (v < 0 || ir_.root(v) != before) continue;
        v = v == before ? last.outputs[0] : alias_of(last.outputs[0], v);
      }
    }
    steps.push_back(std::move(last));
  }

  // A copy of the step that writes a new value.
  PlanStep again(size_t s) {
    const PlanStep &of = plan_.steps[s];
    PlanStep step;
    step.inputs = of.inputs;
    if (of.restorer)
      std::fill(step.inputs.begin() + 1, step.inputs.end(), -1);
    else
      step.inplace = of.inplace;
    step.kernel = std::make_unique<Again>(of, threads_of(plan_.forward_size, ir_.request->num_threads));
    step.outputs.assign(of.outputs.size(), -1);
    step.outputs[0] = ir_.add_like(of.outputs[0]);
    step.scratch = of.scratch < 0 ? -1 : ir_.add_like(of.scratch);
    step.saved = of.saved;
    step.node = of.node;
    step.device = of.device;
    step.label = of.label + " again";
    step.choice = of.choice;
    step.info = std::make_unique<WorkInfo>(SpanKind::kOperator, of.info->name, of.info->op);
    step.info->kernel = of.info->kernel;
    step.info->bytes = of.info->bytes;
    step.info->factors = of.info->factors;
    return step;
  }

  int alias_of(int value, int like) {
    IrValue alias = ir_.values[size_t(like)];
    alias.alias = value;
    alias.node = -1;
    return ir_.add_value(std::move(alias));
  }

  void insert() {
    std::vector<PlanStep> steps;
    std::vector<int> moved;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      for (PlanStep &again : made_again_[s]) steps.push_back(std::move(again));
      moved.push_back(int(steps.size()));
      steps.push_back(std::move(plan_.steps[s]));
    }
    plan_.steps = std::move(steps);
    for (GradientReport &report : plan_.reports) report.step = moved[size_t(report.step)];
  }

  Ir &ir_;
  Plan &plan_;
  std::unordered_map<int, size_t> makers_;                // by root
  std::unordered_map<int, int> num_forward_readers_;      // by root
  std::unordered_map<int, std::vector<size_t>> readers_;  // by root; empty for recomputed values
  std::vector<std::vector<PlanStep>> made_again_;         // by the first step that reads them
};

}  // namespace

void recompute(Ir &ir, Plan *plan) { RecomputePass(ir, plan).run(); }

}  // namespace cohort::plan
