// SPDX-License-Identifier: Apache-2.0
// How executors that each process a part of a batch combine results over the whole (Op::syncs_batch). The caller that
// runs them together implements these two classes, and advances all to a sync point before any goes on
// (Executor::advance): no thread waits inside a step.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "device/device.hpp"

namespace cohort {

// The shares of one step, one per part of the batch.
class StepSync {
 public:
  virtual ~StepSync() = default;
  virtual const BatchShares &shares_for(size_t part) const = 0;  // for work that is queued after all have joined
  // On the threads of the part's queue, in its order, or while nothing is queued on it. In each pass one of the two is
  // called before others read the share.
  virtual void delivered(size_t part) = 0;
  virtual void not_delivered(size_t part, const char *why) noexcept = 0;
  virtual void check_delivered() const = 0;  // kExecution if a share was not delivered
};

class BatchSync {
 public:
  virtual ~BatchSync() = default;
  virtual size_t num_parts() const = 0;
  // The sync of a node's forward or backward step, one for the executors and programs of all parts, with a block on
  // this device for the part's share. `node`: its number in the whole network.
  virtual std::shared_ptr<StepSync> join(size_t part, size_t node, bool backward, size_t share_bytes,
                                         Device &device) = 0;
};

// The two halves of a step that syncs, as kernels.
class PublishShare final : public Kernel {
 public:
  PublishShare(const Kernel *step, std::shared_ptr<StepSync> sync, size_t part)
      : step_(step), sync_(std::move(sync)), part_(part) {}
  void run(const Args &args, const Lane &lane) const override {
    step_->publish_share(args, lane);
    sync_->delivered(part_);
  }

 private:
  const Kernel *const step_;
  const std::shared_ptr<StepSync> sync_;
  const size_t part_;
};

class UseShares final : public Kernel {
 public:
  UseShares(const Kernel *step, std::shared_ptr<StepSync> sync) : step_(step), sync_(std::move(sync)) {}
  void run(const Args &args, const Lane &lane) const override {
    sync_->check_delivered();
    step_->run(args, lane);
  }
  bool replays() const override { return false; }  // it checks the shares each time

 private:
  const Kernel *const step_;
  const std::shared_ptr<StepSync> sync_;
};

}  // namespace cohort
