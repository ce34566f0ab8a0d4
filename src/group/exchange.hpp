// SPDX-License-Identifier: Apache-2.0
// Turns the gradients of a group's devices into an update of its parameters: chooses the reducer (reducer.hpp) and what
// is done with the sums. Driven by group.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/executor.hpp"
#include "group/exchange_types.hpp"
#include "group/gradient_buckets.hpp"
#include "optimizer/optimizer.hpp"

namespace cohort {

enum class UpdateMode : int32_t;
class LocalUpdate;
class GradientReducer;
class SummedUpdate;
class SummedUpdatePlan;
class WeightMirrors;

class Exchange {
 public:
  // `num_gradients`: of all arguments. bucket_bytes 0: chosen from the parameters. `sum_dtype`: the type in which
  // float32 gradients are summed.
  Exchange(ExchangeParams params, ExchangeDevices devices, int num_gradients, size_t bucket_bytes,
           Dtype sum_dtype = Dtype::kFloat32);
  ~Exchange();  // waits for nothing: queued work holds what it uses
  Exchange(const Exchange &) = delete;
  Exchange &operator=(const Exchange &) = delete;

  // Whether its arrays and queues are these.
  bool works_on(const ExchangeParams &params, const ExchangeDevices &devices) const;

  const GradientBuckets &buckets() const { return buckets_; }
  // Before a backward pass is queued on the devices.
  void begin_backward();
  // The programs that backward of this device runs after its buckets; the caller must run them. None if they gain
  // nothing.
  BucketPrograms after_bucket(size_t device);

  // After backward was queued on all devices.
  void end_backward();
  // After that: queues the update of every parameter. Work queued in between still reads the old parameters.
  void update(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode);
  // Called after waiting for the devices' queues: waits for the rest of the exchange's work and throws its errors.
  // Clears what failed passes have left.
  void wait();

 private:
  uint64_t num_given() const;
  bool begin_update(UpdateMode mode) const;
  void update_from_sums(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode);
  const std::shared_ptr<SummedUpdate> &free_update();

  const ExchangeParams params_;  // in the order of their positions
  const ExchangeDevices devices_;
  const GradientBuckets buckets_;
  // A parameter whose shapes differ between devices, so that nothing can be summed; else null.
  const ExchangeParam *mismatched_ = nullptr;
  std::unique_ptr<GradientReducer> reducer_;           // null: one device, or nothing to sum
  std::vector<std::shared_ptr<Timeline>> reduced_on_;  // of its workers
  uint64_t num_given_ = 0;                             // work given to the devices up to the end of backward
  std::unique_ptr<LocalUpdate> local_;
  std::shared_ptr<WeightMirrors> weights_;
  std::shared_ptr<const SummedUpdatePlan> plan_;
  std::vector<std::shared_ptr<SummedUpdate>> updates_;  // updates of the plan, in flight or free
};

}  // namespace cohort
