// SPDX-License-Identifier: Apache-2.0
// Passes of all executors of a group. If their steps exchange batch statistics (Op::syncs_batch), each executor's work
// is queued up to the first such step, then each publishes its share, then the queues wait for each other, and so on
// with the next: no queue waits for work that is not queued yet.
#include <algorithm>
#include <exception>
#include <functional>

#include "base/error.hpp"
#include "executor/executor.hpp"
#include "executor/replicas.hpp"
#include "symbol/node_graph.hpp"

namespace cohort {
namespace {

using Executors = std::vector<std::shared_ptr<Executor>>;

void wait_for_each_other(const Executors &executors) {
  std::vector<std::shared_ptr<Event>> ends;
  for (const auto &executor : executors) ends.push_back(executor->queue()->record());
  for (size_t d = 0; d < executors.size(); ++d) {
    for (size_t e = 0; e < ends.size(); ++e) {
      if (e != d) executors[d]->queue()->wait(ends[e]);
    }
  }
}

void check_one_order(const std::vector<Executor *> &in_pass) {
  for (const Executor *executor : in_pass) {
    if (executor->sync_nodes() == in_pass[0]->sync_nodes()) continue;
    throw Error(Code::kUnsupported, "layers that exchange batch statistics have different orders on different devices");
  }
}

// Runs passes that are prepared, each up to its next stop, then again. All begin before any runs: if outputs of
// different batches share memory, no device then waits for work that another one has yet to get.
void run_in_lockstep(const Executors &executors, bool syncs) {
  std::vector<Executor *> in_pass;
  for (const auto &executor : executors) in_pass.push_back(executor.get());
  check_one_order(in_pass);
  for (Executor *executor : in_pass) executor->begin();
  std::exception_ptr failure;
  while (!in_pass.empty()) {
    std::vector<Executor *> next;
    bool any_syncs = false;
    for (Executor *executor : in_pass) {
      try {
        const PassStop stop = executor->advance();
        if (stop != PassStop::kEnd) next.push_back(executor);
        any_syncs = any_syncs || stop == PassStop::kSync;
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    in_pass = std::move(next);
    if (any_syncs) {  // the others do their work even if one has failed: it has marked its shares as not delivered
      wait_for_each_other(executors);
      continue;
    }
    if (failure && syncs) break;
    check_one_order(in_pass);
  }
  if (failure) std::rethrow_exception(failure);
}

// If one of the devices cannot prepare or begin, or if the next part would lack its share, none goes on.
template <typename Prepare>
void run_all(const Executors &executors, Prepare &&prepare) {
  try {
    for (size_t d = 0; d < executors.size(); ++d) prepare(d);
    run_in_lockstep(executors, executors[0]->options().replicas != nullptr);
  } catch (const std::exception &failure) {
    for (const auto &executor : executors) executor->abandon(failure.what());
    throw;
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

void Executor::forward_all(const Executors &executors, bool is_train) {
  if (executors.size() == 1) return executors[0]->forward(is_train);
  run_all(executors, [&](size_t d) { executors[d]->prepare_forward(is_train); });
}

void Executor::backward_all(const Executors &executors, const std::vector<std::vector<ArraySlice>> &head_grads,
                            const std::function<BucketPrograms(size_t executor)> &after_bucket) {
  if (executors[0]->options().replicas) {
    return run_all(executors, [&](size_t d) {
      executors[d]->prepare_backward(head_grads[d], /* is_train */ true, after_bucket(d));
    });
  }
  std::exception_ptr failure;
  for (size_t d = 0; d < executors.size(); ++d) {
    try {
      executors[d]->backward(head_grads[d], /* is_train */ true, after_bucket(d));
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace cohort
