// SPDX-License-Identifier: Apache-2.0
// Executors behind ExecutorHandle.
#pragma once

#include "mxnet/c_api.h"
#include "symbol_handle.hpp"

namespace cohort_mxnet {

// A monitor of the host. Executors that were reshaped from one another share it.
struct HostMonitor {
  ExecutorMonitorCallback callback = nullptr;
  void *user_data = nullptr;
};

// Contexts of nodes by their group.
struct NodeGroups {
  std::vector<std::string> names;
  std::vector<cohort_context> contexts;
};

class Executor : public Object {
 public:
  static constexpr Kind kKind = Kind::kExecutor;
  static constexpr const char *kName = "an Executor";

  Executor(std::shared_ptr<HostMonitor> shown_to, cohort::Executor made, const cohort_context &on, NodeGroups placed)
      : Object(kKind),
        monitor(std::move(shown_to)),
        executor(std::move(made)),
        context(on),
        groups(std::move(placed)),
        generation_(seed_generation(on)) {}

  std::shared_ptr<HostMonitor> monitor;  // outlives the executor, which calls it
  cohort::Executor executor;
  const cohort_context context;
  const NodeGroups groups;

  // If the host has seeded the context since this was asked last, random operators start a new sequence.
  void follow_seed();
  std::vector<cohort::NDArray> arrays(cohort_executor_list list) const;

 private:
  uint64_t generation_;
};

}  // namespace cohort_mxnet
