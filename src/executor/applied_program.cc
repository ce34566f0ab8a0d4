// SPDX-License-Identifier: Apache-2.0
#include "executor/applied_program.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "base/settings.hpp"
#include "plan/bound_step.hpp"
#include "plan/plan_cache.hpp"

namespace cohort {
namespace {

NodePtr variable_node(const std::string &name) {
  auto node = std::make_shared<Node>();
  node->name = name;
  return node;
}

// A graph with one operator. All inputs are arguments, auxiliary states too: none counts as a constant.
struct OneNodeGraph {
  Graph graph;
  Inferred inferred;

  void add(NodePtr node, std::vector<Graph::Input> inputs, Shapes shapes, Dtypes dtypes) {
    graph.nodes.push_back(std::move(node));
    graph.inputs.push_back(std::move(inputs));
    graph.is_auxiliary.push_back(false);
    inferred.shapes.push_back(std::move(shapes));
    inferred.dtypes.push_back(std::move(dtypes));
  }
};

OneNodeGraph graph_of(const AppliedOperator &what) {
  OneNodeGraph one;
  auto node = std::make_shared<Node>();
  node->op = what.applied.op;
  node->name = what.applied.op->name;
  node->attrs = what.applied.attrs;
  node->parsed = what.applied.parsed;
  std::vector<Graph::Input> inputs;
  for (size_t i = 0; i < what.in_shapes.size(); ++i) {
    const NodePtr input = variable_node(std::to_string(i));
    one.graph.arguments.push_back(int(i));
    one.add(input, {}, {what.in_shapes[i]}, {what.in_dtypes[i]});
    if (i >= what.num_inputs()) continue;
    node->inputs.push_back({input, 0});
    inputs.push_back({int(i), 0});
  }
  const int at = int(one.graph.nodes.size());
  one.add(node, std::move(inputs), what.out_shapes, what.out_dtypes);
  const Op &identity = get_op("_copy");
  for (int output = 0; output < int(what.out_shapes.size()); ++output) {
    if (!what.gives(output)) continue;
    if (!what.staged) {
      one.graph.heads.push_back({at, output});
      continue;
    }
    auto copy = std::make_shared<Node>();
    copy->op = &identity;
    copy->name = node->name;
    copy->parsed = identity.parse({});
    copy->inputs = {{node, output}};
    one.graph.heads.push_back({int(one.graph.nodes.size()), 0});
    one.add(copy, {{at, output}}, {what.out_shapes[size_t(output)]}, {what.out_dtypes[size_t(output)]});
  }
  one.inferred.shapes_complete = one.inferred.dtypes_complete = true;
  return one;
}

}  // namespace

size_t AppliedOperator::num_inputs() const {
  return in_shapes.size() - (applied.backward && forward && forward->saves() ? 1 : 0);
}

bool AppliedOperator::gives(int output) const {
  if (applied.backward) return wanted[size_t(output)];
  return keeps || output < applied.op->num_visible(applied.parsed);
}

AppliedProgram::AppliedProgram(const AppliedOperator &what, const std::shared_ptr<Device> &device, int num_threads)
    : op_(what.applied.name()), forward_(what.forward) {
  const OneNodeGraph one = graph_of(what);
  if (what.applied.op->random) random_seed_ = stream_seed(0, what.in_shapes.size(), 0);
  PlanRequest request;
  BackwardNode backward;
  if (what.applied.backward) {
    if (forward_) backward.forward = forward_->plan_->keeping_kernel;
    if (what.num_inputs() < what.in_shapes.size()) backward.saved = int(what.num_inputs());
    backward.wanted = what.wanted;
    request.backward = &backward;
  }
  request.gives_saved = what.keeps;
  request.graph = &one.graph;
  request.inferred = &one.inferred;
  request.grad_reqs.assign(what.in_shapes.size(), GradReq::kNull);
  request.devices = {device};
  request.is_train = what.applied.is_train;
  request.always_updates_aux = !what.frozen;
  // The kernel of the backward step belongs to that of this one alone.
  request.separate_nodes = what.staged || what.keeps || what.applied.backward;
  request.num_threads = num_threads;
  plan_ = shared_plan(request);
  saves_ = plan_->head_slots.size() > one.graph.heads.size();
  for (const int input : what.applied.mutated(what.num_inputs())) mutated_.push_back(size_t(input));
  for (const PlanStep &step : plan_->steps) {
    on_caller_ = on_caller_ || step.kernel->on_caller();
    for (const int slot : step.inputs) addresses_.push_back(address_of(slot));
    for (const int slot : step.outputs) addresses_.push_back(address_of(slot));
    addresses_.push_back(address_of(step.scratch));
    addresses_.push_back(address_of(step.saved));
    num_pointers_ += count_pointers(step);
  }
  if (!trace_enabled("plan")) return;
  for (const PlanStep &step : plan_->steps) {
    log(LogLevel::kDebug, text("plan: applied ", step.label, " on ", device->context()));
  }
}

AppliedProgram::Address AppliedProgram::address_of(int index) const {
  if (index < 0) return {ValueLocation::kNowhere, 0};
  const Slot &slot = plan_->slots[size_t(index)];
  return {slot.location, slot.location == ValueLocation::kArena ? slot.offset : size_t(slot.index)};
}

void AppliedProgram::bind(void *const *inputs, void *const *outputs, char *arena, RandomStream *random, Step *steps,
                          void **pointers) const {
  const Address *next = addresses_.data();
  const auto resolve = [&](int) -> void * {
    const Address address = *next++;
    switch (address.location) {
      case ValueLocation::kArgument:
        return inputs[address.where];
      case ValueLocation::kOutput:
        return outputs[address.where];
      case ValueLocation::kArena:
        return arena + address.where;
      default:
        return nullptr;
    }
  };
  for (const PlanStep &step : plan_->steps) {
    *steps = bound_step(step, pointers, resolve);
    steps++->args.random = random;
    pointers += count_pointers(step);
  }
}

bool AppliedProgram::may_share(size_t input, size_t output) const {
  const auto is = [this](int slot, ValueLocation location, size_t index) {
    return slot >= 0 && plan_->slots[size_t(slot)].location == location &&
           size_t(plan_->slots[size_t(slot)].index) == index;
  };
  if (std::count(mutated_.begin(), mutated_.end(), input)) return false;
  bool written = false;
  for (const PlanStep &step : plan_->steps) {
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (!is(step.inputs[i], ValueLocation::kArgument, input)) continue;
      if (written) return false;
      for (size_t j = 0; j < step.outputs.size(); ++j) {
        if (is(step.outputs[j], ValueLocation::kOutput, output) &&
            !std::count(step.inplace.begin(), step.inplace.end(), std::pair<int, int>(int(i), int(j)))) {
          return false;
        }
      }
    }
    for (const int slot : step.outputs) written = written || is(slot, ValueLocation::kOutput, output);
  }
  return true;
}

std::shared_ptr<const AppliedProgram> AppliedPrograms::find(std::string_view key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  items_.splice(items_.begin(), items_, found->second);
  return found->second->program;
}

void AppliedPrograms::add(std::string_view key, std::shared_ptr<const AppliedProgram> program) {
  std::list<Item> item, dropped;  // both are allocated and freed outside the lock
  item.push_back({std::string(key), std::move(program)});
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!by_key_.emplace(item.front().key, item.begin()).second) return;  // another thread was faster
  items_.splice(items_.begin(), item);
  ++num_added_;
  if (items_.size() <= kMost) return;
  by_key_.erase(items_.back().key);
  dropped.splice(dropped.begin(), items_, std::prev(items_.end()));
}

size_t AppliedPrograms::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return items_.size();
}

uint64_t AppliedPrograms::num_added() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return num_added_;
}

}  // namespace cohort
