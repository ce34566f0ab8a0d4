// SPDX-License-Identifier: Apache-2.0
// Which program a pass needs, and how it is queued step by step.
#include "executor/planned_network.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "plan/plan_cache.hpp"

namespace cohort {

BoundPlan &PlannedNetwork::program(bool is_train, bool with_backward, bool separate_nodes) {
  const Mode mode{is_train, with_backward, separate_nodes};
  if (const auto known = programs_.find(mode); known != programs_.end()) return *known->second;
  const ExecutorOptions &options = bound_.options;
  PlanRequest request;
  request.graph = &bound_.graph;
  request.inferred = &bound_.inferred;
  request.grad_reqs = bound_.reqs;
  for (size_t index : bound_.arena_index) request.devices.push_back(bound_.arenas->devices[index].device);
  request.group_devices = bound_.group_devices;
  request.fixed_devices = bound_.fixed_devices;
  request.constants = bound_.constants;
  request.same_memory = bound_.same_memory();
  request.is_train = is_train;
  request.with_backward = with_backward;
  request.separate_nodes = separate_nodes;
  request.num_threads = bound_.arenas->devices[bound_.arena_index[0]].queue->num_threads();
  if (options.batch_sync) request.num_replicas = int(options.batch_sync->num_parts());
  const bool in_bytes = options.compute.dtype == Dtype::kInt8;
  if (in_bytes && with_backward) {
    throw Error(Code::kUnsupported,
                "compute_dtype int8: expected inference without gradients, found a network with gradients",
                "compute_dtype");
  }
  request.compute_dtype = in_bytes && is_train ? Dtype::kFloat32 : options.compute.dtype;
  if (in_bytes && !is_train && !separate_nodes) request.ranges = bound_.ranges;
  request.precisions = bound_.precisions;
  request.tf32 = options.compute.tf32;
  request.backward_once = with_backward && options.backward_once;
  request.recompute = with_backward && options.recompute;
  request.restores = with_backward && !options.backward_once;
  request.scales_loss = with_backward && options.loss_scale;
  if (request.scales_loss) request.num_scaled_heads = bound_.num_cut_heads;
  const std::shared_ptr<const Plan> plan = shared_plan(request);
  const auto made = programs_.emplace(
      mode, std::make_shared<BoundPlan>(plan, is_train, bound_.arrays, bound_.arenas, bound_.arena_index));
  bound_.log_if_none_narrow(*this);
  return *made.first->second;
}

void PlannedNetwork::prepare_forward(bool is_train) {
  const bool any_gradient = bound_.any_gradient, is_monitored = bool(bound_.monitor);
  BoundPlan *chosen = &program(is_train, is_train && any_gradient, is_monitored);
  // A pass that changes arguments cannot be repeated, so it must keep what backward needs.
  if (!is_train && any_gradient && !chosen->plan().written_forward.empty())
    chosen = &program(is_train, true, is_monitored);
  pass_ = {chosen, is_train};
}

// An inference forward pass keeps nothing for backward: a program that does runs it again (BWD-07, EXE-24).
void PlannedNetwork::prepare_backward(const std::vector<ArraySlice> &head_grads, bool is_train,
                                      const BucketPrograms &after_bucket) {
  const bool once = !last_->plan().written_forward.empty();  // see prepare_forward()
  BoundPlan &chosen = program(last_is_train_ && (is_train || once), true, bool(bound_.monitor) || last_is_separate_);
  const bool again = &chosen != last_;
  pass_ = {&chosen, is_train, /* forward_again */ again, /* backward */ !again, head_grads, after_bucket};
}

void PlannedNetwork::begin() {
  Progress &progress = pass_.progress;
  if (pass_.backward && !progress.begun) set_head_gradients();
  pass_.backward ? pass_.program->begin_backward() : pass_.program->begin_forward();
  progress.begun = true;
}

// A use of an array is forgotten if others ask for it before its work is queued: the pass is registered now even if
// begin() has done so before.
void PlannedNetwork::start() {
  begin();
  pass_.progress.started = true;
  BoundPlan &program = *pass_.program;
  if (pass_.backward) {
    if (bound_.backward_has_run) program.restore();
    bound_.backward_has_run = true;
  } else if (pass_.forward_again) {
    program.rewind_random();
  } else {
    if (bound_.any_gradient) program.mark_random();
    last_ = &program;
    last_is_train_ = pass_.is_train;
    last_is_separate_ = bool(bound_.monitor);
    bound_.backward_has_run = false;
  }
}

// Does everything that can fail before backward has begun.
void PlannedNetwork::set_head_gradients() const {
  for (size_t i = 0; i < bound_.reqs.size(); ++i) {
    const NDArray &added_to = bound_.arrays.grads[i];
    if (bound_.reqs[i] != GradReq::kAdd || !added_to) continue;
    with_array_name("gradient of", bound_.arg_names[i], [&] { added_to.begin_read(bound_.arenas->timeline); });
  }
  const std::vector<int> &slots = pass_.program->plan().head_gradient_slots;
  for (size_t h = 0; h < slots.size(); ++h)
    if (slots[h] >= 0) pass_.program->copy_to_slot(slots[h], pass_.head_grads[h]);
}

PassStop PlannedNetwork::advance() {
  BoundPlan &program = *pass_.program;
  const size_t num_forward = program.plan().num_forward;
  const std::vector<size_t> &syncs = program.sync_points(pass_.backward);
  Progress &progress = pass_.progress;
  const bool is_last = progress.sync == syncs.size();
  if (!progress.may_sync && !is_last) {  // the others must have read what was published in the pass before
    progress.may_sync = true;
    return PassStop::kSync;
  }
  if (!progress.started) start();
  const size_t end = !is_last         ? syncs[progress.sync]
                     : pass_.backward ? program.plan().steps.size() - num_forward
                                      : num_forward;
  pass_.backward ? backward_to(end) : forward_to(end);
  if (!is_last) {
    program.publish_share(pass_.backward, progress.sync);
    ++progress.sync;
    return PassStop::kSync;
  }
  if (!pass_.forward_again) {
    pass_ = {};
    return PassStop::kEnd;
  }
  program.skip_random();
  last_ = &program;
  last_is_train_ = last_is_train_ && pass_.is_train;
  bound_.backward_has_run = false;
  progress = {};
  pass_.forward_again = false;
  pass_.backward = true;
  return PassStop::kBetweenParts;
}

void PlannedNetwork::abandon(const char *why) {
  const RunningPass pass = std::exchange(pass_, {});
  if (!pass.progress.begun) return;
  pass.program->pass_failed(pass.backward, why);
  if (!pass.backward) last_ = nullptr;
  pass.program->abandon_syncs(pass.backward, pass.progress.sync);
}

void PlannedNetwork::fail_pass(bool backward, const char *why) const {
  if (last_) return last_->pass_failed(backward, why);
  for (size_t h = 0; h < bound_.graph.heads.size() && !backward; ++h) {
    const NDArray &output = bound_.arrays.outputs[h];
    if (output && !bound_.graph.nodes[size_t(bound_.graph.heads[h].node)]->is_variable()) output.fail(why);
  }
}

void PlannedNetwork::forward_to(size_t end) {
  if (bound_.monitor && !pass_.forward_again) return monitored_forward(end);
  pass_.program->run_forward(pass_.progress.step, end);
  pass_.progress.step = end;
}

void PlannedNetwork::backward_to(size_t end) {
  BoundPlan &program = *pass_.program;
  const Plan &plan = program.plan();
  Progress &progress = pass_.progress;
  const bool is_end = end == plan.steps.size() - plan.num_forward;
  if (bound_.monitor) monitored_backward(end);
  for (size_t &b = progress.bucket; b < pass_.after_bucket.count; ++b) {
    const int last_gradient = bound_.bucket_ends[b] - 1;
    const size_t complete = last_gradient < 0 ? 0 : plan.gradient_order[size_t(last_gradient)].second;
    if (complete > end || (bound_.monitor && !is_end)) break;
    if (complete > progress.step) program.run_backward(progress.step, complete);
    progress.step = std::max(progress.step, complete);
    program.run(pass_.after_bucket.programs[b], pass_.after_bucket.owner);
  }
  if (progress.step < end) program.run_backward(progress.step, end);
  progress.step = end;
}

int PlannedNetwork::partial_forward(bool is_train, int step) {
  BoundPlan &chosen = program(is_train, is_train && bound_.any_gradient, true);
  const std::vector<size_t> &end = chosen.plan().node_end;
  if (!chosen.sync_nodes().empty()) bound_.refuse_sync();
  chosen.begin_forward();
  // The values of the last pass are elsewhere, or were overwritten: run the steps before this one again.
  const bool gone =
      last_ && (last_ != &chosen || !chosen.is_latest() || (bound_.options.backward_once && bound_.backward_has_run));
  last_ = &chosen;
  last_is_train_ = is_train;
  last_is_separate_ = true;
  bound_.backward_has_run = false;
  const int first = gone ? 0 : step;
  if (bound_.any_gradient) chosen.mark_random_of(first, step);
  pass_ = {&chosen, is_train};
  pass_.progress.begun = true;
  chosen.run_forward(first == 0 ? 0 : end[size_t(first) - 1], end[size_t(step)]);
  pass_ = {};
  const Node &node = *bound_.graph.nodes[size_t(step)];
  if (bound_.monitor && !node.is_variable())
    for (int o = 0; o < node.num_outputs(); ++o) report_output(chosen, step, o);
  return int(bound_.graph.nodes.size()) - 1 - step;
}

std::vector<int> PlannedNetwork::gradient_order() {
  std::vector<int> order;
  for (const auto &entry : program(true, true, false).plan().gradient_order) order.push_back(entry.first);
  return order;
}

std::vector<bool> PlannedNetwork::narrow_nodes() const {
  std::vector<bool> narrow;
  if (!programs_.empty()) narrow = programs_.begin()->second->plan().narrow_nodes;
  narrow.resize(bound_.graph.nodes.size(), false);
  return narrow;
}

MemoryUse PlannedNetwork::planned_memory() const {
  MemoryUse use;
  for (const auto &entry : programs_) {
    const Plan &plan = entry.second->plan();
    size_t planned = 0;
    for (size_t bytes : plan.arena_bytes) planned += bytes;
    if (planned < use.planned_bytes) continue;
    use.planned_bytes = planned;
    use.intermediate_bytes = plan.intermediate_bytes;
    use.value_bytes = plan.value_bytes;
  }
  return use;
}

std::vector<std::shared_ptr<Memory>> PlannedNetwork::memory_blocks() const {
  std::vector<std::shared_ptr<Memory>> blocks;
  const auto add = [&](const std::shared_ptr<Memory> &block) {
    if (block) blocks.push_back(block);
  };
  for (const size_t index : bound_.arena_index) add(bound_.arenas->devices[index].arena);
  for (const auto &entry : programs_)
    for (const auto &constant : entry.second->constants()) add(constant->memory);
  return blocks;
}

}  // namespace cohort
