// SPDX-License-Identifier: Apache-2.0
// Updates of a group some of whose devices have memory that the host does not see: gradients come to host memory
// through the devices' queues, are summed there and update parameters there, on the queue of a cpu device, and the
// parameters go back. Nobody waits but queues for each other. For exchange.cc.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "group/exchange.hpp"
#include "group/update_plan.hpp"

namespace cohort {

class StagedUpdate {
 public:
  // The first cpu device's queue does the work; a queue of its own does where there is none.
  StagedUpdate(const std::vector<ExchangeParam> &params, const std::vector<std::shared_ptr<Queue>> &queues,
               const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode);
  ~StagedUpdate();
  StagedUpdate(const StagedUpdate &) = delete;
  StagedUpdate &operator=(const StagedUpdate &) = delete;

  bool fits(const Optimizer &optimizer, UpdateMode mode) const { return plan_->fits(optimizer, mode); }
  void run();
  void note_versions();  // the parameters' storages have been told that they change

 private:
  struct Job;
  Job &free_job();
  void bring_down(size_t device);
  void take_up(size_t device);

  const std::vector<ExchangeParam> &params_;
  const std::vector<std::shared_ptr<Queue>> &queues_;
  const UpdateMode mode_;
  std::vector<ExchangeParam> mirrors_;  // params with arrays on the host in the place of those that it does not see
  std::vector<bool> on_host_;           // per device
  std::vector<std::vector<uint64_t>> versions_;  // [param][device]: of the weight that the mirror is equal to
  std::shared_ptr<Queue> store_;
  size_t store_device_ = 0;  // whose kernels the store runs
  std::shared_ptr<UpdatePlan> plan_;
  std::vector<std::shared_ptr<Job>> jobs_;
};

}  // namespace cohort
