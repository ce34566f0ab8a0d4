// SPDX-License-Identifier: Apache-2.0
// The parameters of an exchange as an optimizer sees them: which copies of each it updates, their counts and states.
// For summed_update.cc and local_update.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "group/exchange_types.hpp"
#include "group/group.hpp"

namespace cohort {

class UpdateSlots {
 public:
  enum { kMostStates = 4 };

  // With kOnStore there is one copy of each parameter, else one per device. `sources`: the arrays that hold the weights
  // now; `params`: those that hold them when they are updated.
  UpdateSlots(const ExchangeParams &params, const ExchangeParams &sources, size_t num_devices,
              const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode);

  bool fits(const Optimizer &optimizer, UpdateMode mode) const {
    return !pending_ && optimizer_.get() == &optimizer && generation_ == optimizer.generation() && mode_ == mode &&
           copies_agree();
  }
  const Optimizer &optimizer() const { return *optimizer_; }
  size_t num_copies() const { return num_copies_; }
  // Registers an update with the states, those of copy c on timeline c, or on the last one; returns whether queues have
  // to wait for other work.
  bool begin_states(const std::vector<std::shared_ptr<Timeline>> &timelines) const;
  // Counts one update of every copy; `queue` queues it with these values, [param * num_copies + copy]. If that throws,
  // the update is not counted, and the optimizer does not get the slots that were made for it.
  template <typename Queue>
  void count(std::vector<UpdateValues> *values, const Queue &queue) const {
    const auto num_update = int64_t(optimizer_->get("num_update"));
    begin(values);
    try {
      queue();
    } catch (...) {
      optimizer_->undo_begin_update(slots_, num_update);
      throw;
    }
    commit();
  }
  // Marks the states of a failed update as failed.
  void fail(size_t param, size_t copy, const char *message) const noexcept;
  // Finds addresses of the states from element `begin` on; `states` has room for kMostStates.
  void find_states(size_t param, size_t copy, int64_t begin, void **states) const;

 private:
  void begin(std::vector<UpdateValues> *values) const;
  bool copies_agree() const;  // all copies of a parameter have had as many updates
  void commit() const noexcept;

  const std::shared_ptr<Optimizer> optimizer_;
  const UpdateMode mode_;
  const size_t num_copies_;
  mutable uint64_t generation_;
  mutable std::unique_ptr<Optimizer::PendingSlots> pending_;  // null once an update was queued
  std::vector<std::string> names_;                            // of the parameters
  std::vector<Optimizer::Slot *> slots_;
  std::vector<std::vector<NDArray>> states_;  // per slot
};

}  // namespace cohort
