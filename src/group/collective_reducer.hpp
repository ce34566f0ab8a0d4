// SPDX-License-Identifier: Apache-2.0
// Sums gradients on the devices, where these can sum among themselves (device/communicator.hpp), in parallel to their
// queues: a bucket is summed as soon as all devices have it, while they are still in backward. Each device has all sums
// in memory of its own, apart from the gradients, and consumes them there. For exchange.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/communicator.hpp"
#include "group/reducer.hpp"

namespace cohort {

class CollectiveReducer final : public GradientReducer {
 public:
  // Null if these devices cannot; *why says why. `sum_dtype`: the `wanted` of type_of_sum().
  static std::unique_ptr<CollectiveReducer> make(const ExchangeParams &params, const GradientBuckets &buckets,
                                                 const ExchangeDevices &devices, Dtype sum_dtype, std::string *why);

  bool on_devices() const override { return true; }
  void *sum_of(size_t param, size_t worker) const override;
  void begin_backward() override;
  BucketPrograms after_bucket(size_t device) override;
  void end_backward() override;
  void before_update() override;
  void wait() override;

 private:
  struct Work;
  class Reduction;
  CollectiveReducer(const ExchangeParams &params, const GradientBuckets &buckets, const ExchangeDevices &devices,
                    Dtype sum_dtype, std::shared_ptr<Communicator> communicator);
  void queue_sums(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool waits) override;
  void begin_reduction();
  const std::shared_ptr<Communicator> &communicator();

  const ExchangeDevices devices_;
  std::vector<Context> contexts_;
  const std::shared_ptr<Work> work_;
  std::shared_ptr<Communicator> communicator_;
  std::vector<std::shared_ptr<Reduction>> reductions_;
  std::shared_ptr<Reduction> latest_;  // that of the latest backward
  bool asked_ = false, eager_ = false;
  std::vector<uint64_t> versions_;  // of the gradients when backward ended
};

}  // namespace cohort
