// SPDX-License-Identifier: Apache-2.0
// State that the executors of a group share: where steps that depend on the whole batch (Op::syncs_batch) put each
// device's share of the statistics. No thread waits inside such a step: the executors' work is queued up to it
// (executor_lockstep.cc), and their queues wait for each other there. Private to src/executor; the group makes one and
// gives it to all its executors.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "device/device.hpp"

namespace cohort {

// The devices' shares for one step.
class BatchSync {
 public:
  BatchSync(size_t num_replicas, size_t share_bytes);
  // Allocates the block for the replica's share. Before work that syncs is queued; calling it again does nothing.
  void join(size_t replica, Device &device);
  // For work that is queued after all have joined.
  const BatchShares &shares_for(size_t replica) const { return shares_[replica]; }
  // On the threads of the replica's queue, in its order, or while nothing is queued on it. In each pass one of the two
  // is called before others read the share.
  void delivered(size_t replica) { delivered_[replica].store(true, std::memory_order_release); }
  void not_delivered(size_t replica, const char *why) noexcept;
  void check_delivered() const;  // kExecution if a device did not deliver its share

 private:
  const size_t share_bytes_;
  std::vector<std::shared_ptr<void>> blocks_;  // null: it has not joined
  std::vector<BatchShares> shares_;
  std::vector<std::atomic<bool>> delivered_;
  std::vector<std::array<char, 256>> reasons_;  // why a device has not delivered its share
};

class Replicas {
 public:
  explicit Replicas(size_t num_replicas) : num_(num_replicas) {}
  size_t size() const { return num_; }
  // The sync of a node's forward or backward step: one for all executors and programs that ask.
  std::shared_ptr<BatchSync> sync(int node, bool backward, size_t share_bytes);
  // For the executors' second parts (value_shapes.hpp), whose nodes have other numbers.
  const std::shared_ptr<Replicas> &second_parts() {
    if (!second_parts_) second_parts_ = std::make_shared<Replicas>(num_);
    return second_parts_;
  }

 private:
  const size_t num_;
  std::shared_ptr<Replicas> second_parts_;
  std::map<std::tuple<int, bool, size_t>, std::shared_ptr<BatchSync>> syncs_;
};

// The two halves of a step that syncs, as kernels.
class PublishShare final : public Kernel {
 public:
  PublishShare(const Kernel *step, std::shared_ptr<BatchSync> sync, size_t replica)
      : step_(step), sync_(std::move(sync)), replica_(replica) {}
  void run(const Args &args, const Lane &lane) const override {
    step_->publish_share(args, lane);
    sync_->delivered(replica_);
  }

 private:
  const Kernel *const step_;
  const std::shared_ptr<BatchSync> sync_;
  const size_t replica_;
};

class UseShares final : public Kernel {
 public:
  UseShares(const Kernel *step, std::shared_ptr<BatchSync> sync) : step_(step), sync_(std::move(sync)) {}
  void run(const Args &args, const Lane &lane) const override {
    sync_->check_delivered();
    step_->run(args, lane);
  }
  bool replays() const override { return false; }  // it checks the shares each time

 private:
  const Kernel *const step_;
  const std::shared_ptr<BatchSync> sync_;
};

}  // namespace cohort
