// SPDX-License-Identifier: Apache-2.0
// Sums gradients where some devices have memory that the host cannot reach: their gradients are copied to the host
// through their queues and summed there, on the queue of a cpu device. Only queues wait, for each other. For
// exchange.cc.
#pragma once

#include <memory>
#include <vector>

#include "group/reducer.hpp"

namespace cohort {

class StagedReducer final : public GradientReducer {
 public:
  // The first cpu device's queue does the work; if there is none, a queue of its own. `sum_dtype`: the `wanted` of
  // type_of_sum().
  StagedReducer(const ExchangeParams &params, const GradientBuckets &buckets, const ExchangeDevices &devices,
                Dtype sum_dtype = Dtype::kFloat32);

  const std::shared_ptr<Timeline> &timeline() const { return timeline_; }  // of its only worker, which is on the host
  void wait() override;

 private:
  struct Arrays;
  struct Sums;
  StagedReducer(const ExchangeParams &params, const GradientBuckets &buckets, const ExchangeDevices &devices,
                const ExchangeDevice &store, Dtype sum_dtype);
  void queue_sums(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool waits) override;
  void broadcast(SumConsumer &consumer, bool replace_gradients);
  const std::shared_ptr<Sums> &free_sums();

  const ExchangeDevices devices_;
  const Dtype sum_dtype_;
  const std::shared_ptr<Queue> queue_;
  const std::shared_ptr<Timeline> timeline_;
  bool own_queue_ = false;
  std::shared_ptr<const Arrays> arrays_;
  std::shared_ptr<const PieceSum> sum_;
  std::vector<std::shared_ptr<Sums>> all_sums_;
};

}  // namespace cohort
