// SPDX-License-Identifier: Apache-2.0
// An executor runs a whole network bound to plans (planned_network.hpp), or one in two parts (value_shapes.hpp).
// Private to src/executor.
#pragma once

#include <functional>
#include <vector>

#include "executor/executor.hpp"

namespace cohort {

class PlannedNetwork;

class ExecutableNetwork {
 public:
  virtual ~ExecutableNetwork() = default;

  // The pass of an executor (executor.hpp), which has checked the call. If begin() or advance() throws, abandon()
  // follows: it ends the pass and, if that has begun, marks everything that it would have written as failed.
  virtual void prepare_forward(bool is_train) = 0;
  virtual void prepare_backward(const std::vector<ArraySlice> &head_grads, bool is_train,
                                const BucketPrograms &after_bucket) = 0;
  virtual const std::vector<int> &sync_nodes() const = 0;
  virtual bool repeats_forward() const = 0;
  virtual void repeat_forward() = 0;
  virtual void begin() = 0;
  virtual PassStop advance() = 0;
  virtual void abandon(const char *why) = 0;
  virtual int partial_forward(bool is_train, int step) = 0;

  virtual bool has_run() const = 0;                      // there is a forward pass for backward to follow
  virtual std::vector<int> gradient_order() = 0;         // Executor::gradient_order()
  virtual std::vector<bool> narrow_nodes() const = 0;    // by node: it computes in ExecutorOptions::compute
  virtual const Node *node_sized_by_values() const = 0;  // Executor::node_sized_by_values()
  // Calls fn for each network with plans that it consists of: itself, or those of its parts that are bound now.
  // Allocates nothing, so that it may follow a failure.
  virtual void each_planned(const std::function<void(const PlannedNetwork &)> &fn) const = 0;
};

}  // namespace cohort
