// SPDX-License-Identifier: Apache-2.0
// Passes of all executors of a group. If their steps exchange batch statistics (Op::syncs_batch), each executor's work
// is queued up to the first such step, then each publishes its share, then the queues wait for each other, and so on
// with the next: no queue waits for work that is not queued yet.
#include <algorithm>
#include <deque>
#include <exception>
#include <functional>

#include "base/error.hpp"
#include "executor/executor.hpp"
#include "executor/executor_impl.hpp"
#include "executor/value_shapes.hpp"
#include "symbol/node_graph.hpp"

namespace cohort {
namespace {

using BoundPlans = std::vector<BoundPlan *>;

void wait_for_each_other(const BoundPlans &bound_plans) {
  std::vector<std::shared_ptr<Event>> ends;
  for (BoundPlan *bound : bound_plans) ends.push_back(bound->main_queue().record());
  for (size_t d = 0; d < bound_plans.size(); ++d) {
    for (size_t e = 0; e < ends.size(); ++e) {
      if (e != d) bound_plans[d]->main_queue().wait(ends[e]);
    }
  }
}

// Checks, before anything is queued, that steps which sync have the same order on all devices.
void check_one_order(const BoundPlans &bound_plans, bool backward) {
  for (const BoundPlan *bound : bound_plans) {
    if (bound->sync_nodes(backward) == bound_plans[0]->sync_nodes(backward)) continue;
    throw Error(Code::kUnsupported, "layers that exchange batch statistics have different orders on different devices");
  }
}

// advance(device, end) queues the device's steps up to `end`, of forward or of backward.
template <typename Advance>
void run_between_syncs(const BoundPlans &bound_plans, bool backward, size_t num_steps(const Plan &), Failures *failures,
                       Advance &&advance) {
  std::vector<std::vector<size_t>> stops;
  for (BoundPlan *bound : bound_plans) {
    stops.push_back(bound->sync_points(backward));
    stops.back().push_back(num_steps(bound->plan()));
  }
  const size_t num_syncs = stops[0].size() - 1;
  if (num_syncs > 0) wait_for_each_other(bound_plans);  // the shares of the pass before must have been read
  for (size_t m = 0; m <= num_syncs; ++m) {
    for (size_t d = 0; d < bound_plans.size(); ++d) {
      if (failures->failed(d)) continue;
      failures->attempt(d, [&] {
        advance(d, stops[d][m]);
        if (m < num_syncs) bound_plans[d]->publish_share(backward, m);
      });
      if (failures->failed(d)) bound_plans[d]->abandon_syncs(backward, m);
    }
    if (m < num_syncs) wait_for_each_other(bound_plans);
  }
}

// Whether an operator inside a node syncs with other devices.
bool syncs_inside(const NodeGraph &inside) {
  for (const NodePtr &node : inside.graph().nodes) {
    if (!node->is_variable() && node->op->syncs_batch) return true;
    for (const auto &graph : node->subgraphs) {
      if (syncs_inside(*graph)) return true;
    }
  }
  return false;
}

size_t forward_steps(const Plan &plan) { return plan.num_forward; }
size_t backward_steps(const Plan &plan) { return plan.steps.size() - plan.num_forward; }

}  // namespace

std::shared_ptr<Replicas> Executor::make_replicas(const Symbol &symbol, size_t num) {
  if (num < 2) return nullptr;
  const Graph graph(symbol);
  for (const NodePtr &node : graph.nodes) {
    for (const auto &inside : node->subgraphs) {
      if (!syncs_inside(*inside)) continue;
      throw Error(Code::kUnsupported,
                  text("node '", node->name,
                       "': an operator that exchanges batch statistics between devices cannot be inside a loop, branch "
                       "or cached graph"),
                  node->name);
    }
  }
  const bool any_syncs = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                     [](const auto &node) { return !node->is_variable() && node->op->syncs_batch; });
  return any_syncs ? std::make_shared<Replicas>(num) : nullptr;
}

void Executor::forward_all(const std::vector<std::shared_ptr<Executor>> &executors, bool is_train) {
  try_forward(executors, is_train).rethrow();
}

void Executor::backward_all(const std::vector<std::shared_ptr<Executor>> &executors,
                            const std::vector<std::vector<ArraySlice>> &head_grads,
                            const std::function<BucketPrograms(size_t executor)> &after_bucket) {
  try_backward(executors, head_grads, /* is_train */ true, after_bucket).rethrow();
}

// Begins a pass on all executors. If one of them cannot begin, those that have begun are not run either.
template <typename Begin>
void Executor::begin_all(const std::vector<std::shared_ptr<Executor>> &executors, bool backward, Begin &&begin) {
  size_t d = 0;
  try {
    for (; d < executors.size(); ++d) begin(d);
  } catch (const std::exception &failure) {
    while (d-- > 0) executors[d]->impl_->abandon_pass(backward, failure.what());
    throw;
  }
}

Failures Executor::try_forward(const std::vector<std::shared_ptr<Executor>> &executors, bool is_train) {
  Failures failures(executors.size());
  std::deque<Impl::PassGuard> passes;
  if (executors[0]->impl_->parts) {
    std::vector<ValueShapedParts *> all;
    for (const auto &executor : executors) {
      executor->check_arguments();
      passes.emplace_back(executor->impl_.get(), "forward");
      all.push_back(executor->impl_->parts.get());
    }
    return ValueShapedParts::forward(all, is_train);
  }
  if (!executors[0]->impl_->options.replicas || executors.size() == 1) {
    // Begin all before any runs: if outputs of different batches share memory, no device then waits for work that
    // another one has yet to get.
    if (executors.size() > 1) {
      begin_all(executors, /* backward */ false,
                [&](size_t d) { executors[d]->impl_->program_of_forward(is_train).begin_forward(); });
    }
    for (size_t d = 0; d < executors.size(); ++d) failures.attempt(d, [&] { executors[d]->forward(is_train); });
    return failures;
  }
  BoundPlans bound_plans;
  for (const auto &executor : executors) {
    executor->check_arguments();
    passes.emplace_back(executor->impl_.get(), "forward");
    bound_plans.push_back(&executor->impl_->program_of_forward(is_train));
  }
  check_one_order(bound_plans, /* backward */ false);
  begin_all(executors, /* backward */ false, [&](size_t d) { executors[d]->impl_->start_forward(is_train); });
  std::vector<Impl::Progress> progress(executors.size());
  run_between_syncs(bound_plans, /* backward */ false, forward_steps, &failures, [&](size_t d, size_t end) {
    Impl &self = *executors[d]->impl_;
    self.run_pass(*bound_plans[d], /* backward */ false, [&] { self.forward_to(*bound_plans[d], end, &progress[d]); });
  });
  return failures;
}

Failures Executor::try_backward(const std::vector<std::shared_ptr<Executor>> &executors,
                                const std::vector<std::vector<ArraySlice>> &head_grads, bool is_train,
                                const std::function<BucketPrograms(size_t executor)> &after_bucket) {
  Failures failures(executors.size());
  const Impl &front = *executors[0]->impl_;
  if (!front.options.replicas || !front.any_gradient || executors.size() == 1) {
    for (size_t d = 0; d < executors.size(); ++d) {
      failures.attempt(d, [&] { executors[d]->backward(head_grads[d], is_train, after_bucket(d)); });
    }
    return failures;
  }
  std::deque<Impl::PassGuard> passes;
  for (const auto &executor : executors) passes.emplace_back(executor->impl_.get(), "backward");
  if (front.parts) {
    std::vector<ValueShapedParts *> all;
    for (const auto &executor : executors) all.push_back(executor->impl_->parts.get());
    return ValueShapedParts::backward(all, head_grads, is_train);
  }
  BoundPlans bound_plans;
  bool forward_again = false;
  for (const auto &executor : executors) {
    bool again = false;
    bound_plans.push_back(&executor->impl_->backward_program(is_train, &again));
    forward_again = forward_again || again;
  }
  for (const bool backward : {false, true}) check_one_order(bound_plans, backward);
  if (forward_again) {
    begin_all(executors, /* backward */ false, [&](size_t d) {
      Impl &self = *executors[d]->impl_;
      bound_plans[d]->begin_forward();
      self.last = bound_plans[d];
      self.run_pass(*bound_plans[d], /* backward */ false, [&] { bound_plans[d]->rewind_random(); });
    });
    run_between_syncs(bound_plans, /* backward */ false, forward_steps, &failures,
                      [&, begins = std::vector<size_t>(bound_plans.size())](size_t d, size_t end) mutable {
                        executors[d]->impl_->run_pass(*bound_plans[d], /* backward */ false,
                                                      [&] { bound_plans[d]->run_forward(begins[d], end); });
                        begins[d] = end;
                      });
    if (failures.any()) return failures;
    for (size_t d = 0; d < executors.size(); ++d) {
      Impl &self = *executors[d]->impl_;
      bound_plans[d]->skip_random();
      self.forward_ran(*bound_plans[d], self.last_is_train && is_train);
    }
  }
  for (size_t d = 0; d < executors.size(); ++d) executors[d]->impl_->set_head_gradients(*bound_plans[d], head_grads[d]);
  begin_all(executors, /* backward */ true, [&](size_t d) { executors[d]->impl_->start_backward(*bound_plans[d]); });
  std::vector<Impl::Progress> progress(executors.size());
  std::vector<BucketPrograms> programs;
  for (size_t d = 0; d < executors.size(); ++d) programs.push_back(after_bucket(d));
  run_between_syncs(bound_plans, /* backward */ true, backward_steps, &failures, [&](size_t d, size_t end) {
    Impl &self = *executors[d]->impl_;
    self.run_pass(*bound_plans[d], /* backward */ true,
                  [&] { self.backward_to(*bound_plans[d], end, programs[d], &progress[d]); });
  });
  return failures;
}

}  // namespace cohort
