// SPDX-License-Identifier: Apache-2.0
// An optimizer's update of all parameters from summed gradients: what a group's reducer gives its sums to. For
// exchange.cc.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device/trace.hpp"
#include "group/reducer.hpp"
#include "group/update_slots.hpp"

namespace cohort {

// Weights on the host in the place of those that it does not see: brought there where they are not known, and taken
// back once they have been updated.
class WeightMirrors {
 public:
  // Not `wanted`: those who update are the devices, and every weight is its own mirror.
  WeightMirrors(const ExchangeParams &params, bool wanted);

  const ExchangeParams &mirrored() const { return mirrored_; }
  const ExchangeParams &params() const { return params_; }
  // Queue the copies; `owner` holds this. `num_copies`: of each parameter, those that an update starts from.
  void copy_to_host(size_t num_copies, const ExchangeDevices &devices, const std::shared_ptr<const void> &owner) const;
  void copy_to_devices(const ExchangeDevices &devices, const std::shared_ptr<const void> &owner) const;
  // Around an update: which weights are others than their mirrors; and that they are the same now.
  void find_changed();
  void note_versions();

 private:
  const ExchangeParams params_;
  ExchangeParams mirrored_;
  bool any_ = false;
  std::vector<std::vector<bool>> changed_;       // [param][device]
  std::vector<std::vector<uint64_t>> versions_;  // [param][device]: of the weight that the mirror is equal to
};

// What updates work with, made once: kernels for each worker, states. No queue: work that is queued owns it.
class SummedUpdatePlan {
 public:
  SummedUpdatePlan(std::shared_ptr<WeightMirrors> weights, const GradientReducer &reducer,
                   const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode);

  bool fits(const Optimizer &optimizer, UpdateMode mode) const { return slots_.fits(optimizer, mode); }
  const UpdateSlots &slots() const { return slots_; }
  const WeightMirrors &weights() const { return *weights_; }
  // A device's weights were not updated, and what its update would have changed with them is no good.
  void fail(size_t device, const char *message) const noexcept;
  // How many pieces of each parameter must have come before it can be updated. Empty: each is updated as it comes.
  const std::vector<int> &pieces_to_gather() const { return num_pieces_; }
  // Updates every copy of a piece from its sum; where there is but one copy, hands it out to the other devices. What is
  // updated as a whole waits for the last piece: `missing` counts those of each parameter, as it says above.
  void update_piece(size_t worker, size_t bucket, size_t index, const void *sum,
                    const std::vector<UpdateValues> &values, std::atomic<int> *missing, const Lane &lane) const;
  // A worker that is a device updates its own copy of everything, if it has one: the numbers of the steps that follow,
  // and the steps.
  void set_numbers(size_t worker, const std::vector<UpdateValues> &values) const;
  void append_steps(size_t worker, std::vector<Step> *steps) const;
  // After all that: the first device's queue hands out what was updated there alone; it does not wait for the others,
  // which have come to the sums.
  void broadcast(const ExchangeDevices &devices, const std::shared_ptr<const void> &owner) const;

 private:
  // Of a parameter that is updated as a whole: by whoever brings its last piece, one at a time.
  struct WholeParam {
    std::unique_ptr<UpdateKernel> kernel;
    std::shared_ptr<Memory> sum;  // of all pieces; null: there is one
  };
  void make_whole_params(const GradientReducer &reducer, const Optimizer &optimizer);
  const void *gather(const Piece &piece, const void *sum, std::atomic<int> *missing) const;

  struct Kernels {  // of one worker
    std::map<std::pair<Dtype, int64_t>, std::unique_ptr<UpdateKernel>> all;
    std::vector<std::vector<UpdateKernel *>> of;  // [bucket][piece]
    // Of a worker that is a device: of each parameter with gradients, bound to its arrays.
    std::vector<std::pair<size_t, std::unique_ptr<UpdateKernel>>> bound;
  };
  void make_bound(size_t worker, const Worker &who, const GradientReducer &reducer, const Optimizer &optimizer);

  const std::shared_ptr<WeightMirrors> weights_;
  const std::shared_ptr<const Pieces> pieces_;
  const UpdateSlots slots_;
  const bool on_devices_;
  std::vector<Kernels> kernels_;
  std::vector<WholeParam> wholes_;  // of each parameter, or none
  std::vector<int> num_pieces_;
  std::vector<std::string> labels_;  // of each parameter
  std::deque<WorkInfo> infos_;       // likewise
};

// One update, in flight or free.
class SummedUpdate final : public SumConsumer {
 public:
  explicit SummedUpdate(std::shared_ptr<const SummedUpdatePlan> plan);
  ~SummedUpdate() override;

  template <typename Queue>
  void count(const Queue &queue) {  // see UpdateSlots
    plan_->slots().count(&values_, queue);
  }
  void before_sums(const ExchangeDevices &devices) override;
  void after_sums(const ExchangeDevices &devices) override;
  void consume(size_t worker, size_t bucket, size_t index, const void *sum, const Lane &lane) override;
  Program steps(size_t worker) override;
  void fail(size_t device, const char *message) noexcept override;

 private:
  struct OnDevice;
  const std::shared_ptr<const SummedUpdatePlan> plan_;
  std::vector<UpdateValues> values_;
  const std::unique_ptr<std::atomic<int>[]> missing_;  // pieces of each parameter that is gathered
  std::vector<std::unique_ptr<OnDevice>> on_devices_;  // by worker
};

}  // namespace cohort
