// SPDX-License-Identifier: Apache-2.0
// An optimizer's update of all parameters from summed gradients: the consumer of a group's reducer. For exchange.cc.
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

// Copies, on the host, of weights that the host cannot reach: copied there if they have changed, and back once they
// have been updated.
class WeightMirrors {
 public:
  // Not `wanted`: the devices do the update, and every weight is its own mirror.
  WeightMirrors(const ExchangeParams &params, bool wanted);

  const ExchangeParams &mirrored() const { return mirrored_; }
  const ExchangeParams &params() const { return params_; }
  // Queue the copies; `owner` keeps this alive. `num_copies`: how many copies of each parameter an update starts from.
  void copy_to_host(size_t num_copies, const ExchangeDevices &devices, const std::shared_ptr<const void> &owner) const;
  void copy_to_devices(const ExchangeDevices &devices, const std::shared_ptr<const void> &owner) const;
  // find_changed(), before an update, finds the weights that differ from their mirrors; note_versions(), after it,
  // records that they are the same.
  void find_changed();
  void note_versions();

 private:
  const ExchangeParams params_;
  ExchangeParams mirrored_;
  bool any_ = false;
  std::vector<std::vector<bool>> changed_;       // [param][device]
  std::vector<std::vector<uint64_t>> versions_;  // [param][device]: version of the weight that the mirror is equal to
};

// Kernels of each worker, and states, made once for all updates. Queued work owns it, so it must not own a queue.
class SummedUpdatePlan {
 public:
  SummedUpdatePlan(std::shared_ptr<WeightMirrors> weights, const GradientReducer &reducer,
                   const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode);

  bool fits(const Optimizer &optimizer, UpdateMode mode) const { return slots_.fits(optimizer, mode); }
  const UpdateSlots &slots() const { return slots_; }
  const WeightMirrors &weights() const { return *weights_; }
  // Marks a device's weights, and everything that their update would have changed, as failed.
  void fail(size_t device, const char *message) const noexcept;
  // The number of pieces of each parameter that must have come before it can be updated. Empty: each piece is updated
  // as it comes.
  const std::vector<int> &pieces_to_gather() const { return num_pieces_; }
  // Updates every copy of a piece from its sum; if there is only one copy, copies it to the other devices. A parameter
  // that is updated as a whole waits for its last piece: `missing` counts down pieces_to_gather().
  void update_piece(size_t worker, size_t bucket, size_t index, const void *sum,
                    const std::vector<UpdateValues> &values, std::atomic<int> *missing, const Lane &lane) const;
  // For workers that are devices, each of which updates its own copy of everything, if it has one: set the numbers for
  // the steps that follow; append these steps.
  void set_numbers(size_t worker, const std::vector<UpdateValues> &values) const;
  void append_steps(size_t worker, std::vector<Step> *steps) const;
  // After all that: the first device's queue copies what was updated only there to the others. It need not wait for the
  // others, which have reached the sums.
  void broadcast(const ExchangeDevices &devices, const std::shared_ptr<const void> &owner) const;

 private:
  // A parameter that is updated as a whole, by the worker that brings its last piece, one at a time.
  struct WholeParam {
    std::unique_ptr<UpdateKernel> kernel;
    std::shared_ptr<Memory> sum;  // of all pieces; null if there is only one
  };
  void make_whole_params(const GradientReducer &reducer, const Optimizer &optimizer);
  const void *gather(const Piece &piece, const void *sum, std::atomic<int> *missing) const;

  struct Kernels {  // of one worker
    std::map<std::pair<Dtype, int64_t>, std::unique_ptr<UpdateKernel>> all;
    std::vector<std::vector<UpdateKernel *>> of;  // [bucket][piece]
    // For a worker that is a device: the kernel of each parameter with gradients, bound to its arrays.
    std::vector<std::pair<size_t, std::unique_ptr<UpdateKernel>>> bound;
  };
  void make_bound(size_t worker, const Worker &who, const GradientReducer &reducer, const Optimizer &optimizer);

  const std::shared_ptr<WeightMirrors> weights_;
  const std::shared_ptr<const Pieces> pieces_;
  const UpdateSlots slots_;
  const bool on_devices_;
  std::vector<Kernels> kernels_;
  std::vector<WholeParam> wholes_;  // one per parameter, or empty
  std::vector<int> num_pieces_;
  std::vector<std::string> labels_;  // one per parameter
  std::deque<WorkInfo> infos_;       // one per parameter
};

// One update, in flight or free.
class SummedUpdate final : public SumConsumer {
 public:
  explicit SummedUpdate(std::shared_ptr<const SummedUpdatePlan> plan);
  ~SummedUpdate() override;

  template <typename Queue>
  void count(const Queue &queue) {  // see UpdateSlots::count()
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
  const std::unique_ptr<std::atomic<int>[]> missing_;  // pieces still missing of each gathered parameter
  std::vector<std::unique_ptr<OnDevice>> on_devices_;  // by worker
};

}  // namespace cohort
