// SPDX-License-Identifier: Apache-2.0
// What backward reads of the forward pass and is cheap to make again is made again right before backward reads it,
// where all that it is made of is kept anyway, up to there: the memory in between is free. Cheap are norms, of which
// the statistics are kept (device/restoring.hpp), and all that is no product of matrices.
#include <algorithm>
#include <unordered_map>

#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

// Runs the kernel of an earlier step once more, or what restores its output: on no more threads than it was made for,
// which has scratch for so many.
class Again final : public Kernel {
 public:
  Again(const Kernel *of, std::unique_ptr<Kernel> restorer, int num_threads)
      : restorer_(std::move(restorer)), of_(restorer_ ? *restorer_ : *of), num_threads_(num_threads) {}
  void run(const Args &args, const Lane &lane) const override {
    of_.run(args, {std::min(lane.num_threads, num_threads_), lane.stream, lane.recorder});
  }
  bool replays() const override { return of_.replays(); }

 private:
  const std::unique_ptr<Kernel> restorer_;
  const Kernel &of_;
  const int num_threads_;
};

class RecomputePass {
 public:
  RecomputePass(Ir &ir, Plan *plan) : ir_(ir), plan_(*plan), made_again_(plan->steps.size()) {}

  void run() {
    find_readers();
    for (size_t s = 0; s < plan_.num_forward; ++s) {
      if (is_cheap(plan_.steps[s])) make_again(s);
    }
    insert();
    plan_.slots.resize(ir_.values.size());
  }

 private:
  // The backward steps that read each value, in their order.
  void find_readers() {
    for (size_t s = plan_.num_forward; s < plan_.steps.size(); ++s) {
      for (const int v : plan_.steps[s].inputs) {
        if (v >= 0) readers_[ir_.root(v)].push_back(s);
      }
    }
  }

  bool is_in_arena(int value) const { return value >= 0 && ir_.values[size_t(ir_.root(value))].place == Place::kArena; }

  bool is_kept(int value) const {
    return is_in_arena(value) && readers_.count(ir_.root(value)) > 0 && !ir_.changes(value);
  }

  bool is_cheap(const PlanStep &step) const {
    if (!step.restorer && !step.repeatable) return false;
    if (step.outputs.empty() || !is_kept(step.outputs[0]) || ir_.root(step.outputs[0]) != step.outputs[0]) return false;
    const size_t first_reader = readers_.at(step.outputs[0]).front();
    if (step.scratch >= 0 && bytes_of(step.scratch) >= bytes_of(step.outputs[0])) return false;
    const auto is_there = [&](int v) {
      return is_kept(v) && (!ir_.request->backward_once || readers_.at(ir_.root(v)).back() >= first_reader);
    };
    if (step.restorer) return is_there(step.inputs[0]);
    return step.outputs.size() == 1 && !step.inputs.empty() &&
           std::all_of(step.inputs.begin(), step.inputs.end(), is_there);
  }

  size_t bytes_of(int value) const { return ir_.values[size_t(value)].spec.bytes(); }

  void make_again(size_t s) {
    PlanStep &of = plan_.steps[s];
    const int before = of.outputs[0];
    const std::vector<size_t> readers = readers_[before];
    readers_.erase(before);  // whatever is made of it stays as it is

    PlanStep step;
    step.inputs = of.inputs;
    if (of.restorer) std::fill(step.inputs.begin() + 1, step.inputs.end(), -1);
    const int num_threads = plan_.brief_forward ? 1 : ir_.request->num_threads;
    step.kernel = std::make_unique<Again>(of.kernel.get(), std::move(of.restorer), num_threads);
    step.outputs.assign(of.outputs.size(), -1);
    step.outputs[0] = same_as(before);
    step.scratch = of.scratch < 0 ? -1 : same_as(of.scratch);
    step.saved = of.saved;
    step.node = of.node;
    step.device = of.device;
    step.label = of.label + " again";
    step.choice = of.choice;
    step.info = std::make_unique<WorkInfo>(SpanKind::kOperator, of.info->name, of.info->op);
    step.info->kernel = of.info->kernel;
    step.info->bytes = of.info->bytes;
    step.info->factors = of.info->factors;
    for (const size_t reader : readers) {
      for (int &v : plan_.steps[reader].inputs) {
        if (v < 0 || ir_.root(v) != before) continue;
        v = v == before ? step.outputs[0] : alias_of(step.outputs[0], v);
      }
    }
    made_again_[readers[0]].push_back(std::move(step));
  }

  int alias_of(int value, int like) {
    Value alias = ir_.values[size_t(like)];
    alias.alias = value;
    alias.node = -1;
    return ir_.add_value(std::move(alias));
  }

  int same_as(int value) {
    Value fresh;
    fresh.spec = ir_.values[size_t(value)].spec;
    fresh.device = ir_.values[size_t(value)].device;
    return ir_.add_value(std::move(fresh));
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
  std::unordered_map<int, std::vector<size_t>> readers_;  // by root
  std::vector<std::vector<PlanStep>> made_again_;         // by the step that is the first to read them
};

}  // namespace

void recompute(Ir &ir, Plan *plan) { RecomputePass(ir, plan).run(); }

}  // namespace cohort::plan
