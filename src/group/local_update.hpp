// SPDX-License-Identifier: Apache-2.0
// Updates each device's parameters from its own gradients, on its own queues, without summing. For exchange.cc.
#pragma once

#include <memory>
#include <vector>

#include "group/update_slots.hpp"

namespace cohort {

class LocalUpdate {
 public:
  LocalUpdate(const ExchangeParams &params, const ExchangeDevices &devices, const std::shared_ptr<Optimizer> &optimizer,
              UpdateMode mode);

  bool fits(const Optimizer &optimizer, UpdateMode mode) const;
  void run();  // queues one update of all

 private:
  class Job;
  struct QueueParams;
  struct Plan;
  struct Target {
    size_t device;
    std::shared_ptr<Queue> queue;
  };

  const ExchangeDevices devices_;
  std::vector<Target> targets_;       // one per entry of Plan::parts
  const std::shared_ptr<Plan> plan_;  // owned by queued work, so it must not own a queue
  std::vector<UpdateValues> values_;
};

}  // namespace cohort
