// SPDX-License-Identifier: Apache-2.0
// Sums gradients where all devices are processors that share memory. For exchange.cc.
//
// Each device reports a finished bucket (on its own queue, during backward). Once all devices have reported it and sums
// were asked for, any device that reports a bucket works on its pieces, while others are still in backward. Last, a
// program on each device's queue helps with the rest and waits until all is done. There are no threads but those of the
// queues.
#pragma once

#include <memory>
#include <vector>

#include "group/reducer.hpp"

namespace cohort {

class SharedMemoryReducer final : public GradientReducer {
 public:
  // `sum_dtype`: the `wanted` of type_of_sum().
  SharedMemoryReducer(const ExchangeParams &params, const GradientBuckets &buckets, const ExchangeDevices &devices,
                      Dtype sum_dtype = Dtype::kFloat32);

  void begin_backward() override;
  BucketPrograms after_bucket(size_t device) override;
  void wait() override;

 private:
  class Reduction;
  struct Work;
  void queue_sums(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool waits) override;
  const std::shared_ptr<Reduction> &free_reduction();

  const bool one_processor_;  // so nothing runs in parallel
  const ExchangeDevices devices_;
  const Dtype sum_dtype_;
  const std::shared_ptr<Work> work_;
  std::vector<std::shared_ptr<Reduction>> reductions_;
  std::shared_ptr<Reduction> latest_;  // that of the latest backward
};

}  // namespace cohort
