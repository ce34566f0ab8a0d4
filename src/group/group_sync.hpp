// SPDX-License-Identifier: Apache-2.0
// Where the devices of a group put their shares of batch statistics, for steps that depend on the whole batch
// (Op::syncs_batch). The group makes one for the executors of all its devices.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "executor/batch_sync.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

// The devices' shares for one step.
class GroupStepSync final : public StepSync {
 public:
  GroupStepSync(size_t num_devices, size_t share_bytes);
  void join(size_t part, Device &device);  // does nothing if it is called again
  const BatchShares &shares_for(size_t part) const override { return shares_[part]; }
  void delivered(size_t part) override { delivered_[part].store(true, std::memory_order_release); }
  void not_delivered(size_t part, const char *why) noexcept override;
  void check_delivered() const override;

 private:
  const size_t share_bytes_;
  std::vector<std::shared_ptr<void>> blocks_;  // null: it has not joined
  std::vector<BatchShares> shares_;
  std::vector<std::atomic<bool>> delivered_;
  std::vector<std::array<char, 256>> reasons_;  // why a device has not delivered its share
};

class GroupSync final : public BatchSync {
 public:
  // Null if no operator of the symbol syncs, or if one device has the whole batch. kUnsupported if an operator inside a
  // node does.
  static std::shared_ptr<GroupSync> create(const Symbol &symbol, size_t num_devices);
  explicit GroupSync(size_t num_devices) : num_devices_(num_devices) {}
  size_t num_parts() const override { return num_devices_; }
  std::shared_ptr<StepSync> join(size_t part, size_t node, bool backward, size_t share_bytes, Device &device) override;

 private:
  const size_t num_devices_;
  std::map<std::tuple<size_t, bool, size_t>, std::shared_ptr<GroupStepSync>> steps_;
};

}  // namespace cohort
