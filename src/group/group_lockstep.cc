// SPDX-License-Identifier: Apache-2.0
// If steps exchange batch statistics (Op::syncs_batch), each executor's work is queued up to the first such step, then
// each publishes its share, then the queues wait for each other, and so on with the next: no queue waits for work that
// is not queued yet.
#include "group/group_lockstep.hpp"

#include <algorithm>
#include <exception>

#include "base/error.hpp"

namespace cohort {
namespace {

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

// A device may need its forward steps again where others do not, such as one whose executor got a monitor.
void repeat_forward_together(const std::vector<Executor *> &in_pass) {
  const auto repeats = [](const Executor *executor) { return executor->repeats_forward(); };
  if (std::none_of(in_pass.begin(), in_pass.end(), repeats)) return;
  for (Executor *executor : in_pass) executor->repeat_forward();
}

// Runs passes that are prepared, each up to its next stop, then again.
void run_in_lockstep(const Executors &executors, bool syncs) {
  std::vector<Executor *> in_pass;
  for (const auto &executor : executors) in_pass.push_back(executor.get());
  check_one_order(in_pass);
  repeat_forward_together(in_pass);
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
    repeat_forward_together(in_pass);
  }
  if (failure) std::rethrow_exception(failure);
}

// If one of the devices cannot prepare or begin, or if the next part would lack its share, none goes on.
template <typename Prepare>
void run_all(const Executors &executors, Prepare &&prepare) {
  try {
    for (size_t d = 0; d < executors.size(); ++d) prepare(d);
    run_in_lockstep(executors, executors[0]->options().batch_sync != nullptr);
  } catch (const std::exception &failure) {
    for (const auto &executor : executors) executor->abandon(failure.what());
    throw;
  }
}

}  // namespace

void forward_all(const Executors &executors, bool is_train) {
  if (executors.size() == 1) return executors[0]->forward(is_train);
  run_all(executors, [&](size_t d) { executors[d]->prepare_forward(is_train); });
}

void backward_all(const Executors &executors, const std::vector<std::vector<ArraySlice>> &head_grads,
                  const std::function<BucketPrograms(size_t executor)> &after_bucket) {
  if (executors[0]->options().batch_sync) {
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
