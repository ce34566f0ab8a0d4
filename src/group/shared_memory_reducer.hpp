// SPDX-License-Identifier: Apache-2.0
// Sums where all devices are processors, which see each other's memory. For exchange.cc.
//
// As each device is done with a bucket it says so (on its own queue, in the midst of backward); once all have, and sums
// were asked for, whoever comes by works on its pieces, while other devices are still in backward. Last, a program on
// each device's queue helps with what is left and waits for the rest. There is no thread but the queues' own.
#pragma once

#include <memory>
#include <vector>

#include "group/reducer.hpp"

namespace cohort {

class SharedMemoryReducer final : public GradientReducer {
 public:
  // `sum_dtype`: as type_of_sum() wants it.
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

  const bool one_processor_;  // nothing runs at the same time
  const ExchangeDevices devices_;
  const Dtype sum_dtype_;
  const std::shared_ptr<Work> work_;
  std::vector<std::shared_ptr<Reduction>> reductions_;
  std::shared_ptr<Reduction> latest_;  // of the latest backward
};

}  // namespace cohort
