// SPDX-License-Identifier: Apache-2.0
// Sums gradients over the devices of a group and updates parameters. Driven by group.
//
// A pipeline where all devices are processors: gradients lie in buckets in the order in which backward finishes them.
// As each device is done with a bucket it says so (on its own queue, in the midst of backward); once all have, and an
// update was asked for, whoever comes by works on its pieces, while other devices are still in backward. Last, a
// program on each device's queue helps with what is left and waits for the rest. Nobody else works for the exchange,
// and each element is summed in the order of the devices, so that results do not depend on who does it.
//
// Groups with devices whose memory the host cannot see go through host memory, one device through its own queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ndarray/ndarray.hpp"
#include "optimizer/optimizer.hpp"

namespace cohort {

enum class UpdateMode : int32_t;

// The label of its work in queues: errors that have it as their subject follow from others.
extern const char kExchangeLabel[];

// A parameter that has a gradient, on every device.
struct ExchangeParam {
  std::string name;
  int position = 0;  // in Executor::gradient_order()
  std::vector<NDArray> weights, grads;
};

class Exchange {
 public:
  // `num_gradients` is the length of gradient_order(). bucket_bytes 0: chosen from the parameters. `model_parallel`:
  // arrays of one device may lie on several contexts; where one of these is not the host's, update() waits for the
  // gradients, and updates are done before it returns.
  Exchange(std::vector<ExchangeParam> params, std::vector<std::shared_ptr<Queue>> queues, int num_gradients,
           size_t bucket_bytes, bool model_parallel);
  ~Exchange();  // its queues have finished, or are waited for
  Exchange(const Exchange &) = delete;
  Exchange &operator=(const Exchange &) = delete;

  // The same arrays and queues?
  bool works_on(const std::vector<ExchangeParam> &params, const std::vector<std::shared_ptr<Queue>> &queues) const;

  const std::vector<int> &bucket_ends() const;  // for Executor::set_buckets()
  // Before a backward pass is queued on the devices. `in_buckets`: it will call what after_bucket() gives.
  void begin_backward(bool in_buckets);
  // What backward of this device is to call after each bucket; empty if there is nothing to gain. Stays where it is
  // until that pass is over.
  const std::vector<std::function<void()>> &after_bucket(size_t device) const;

  // After backward was queued on all devices: queues the update of every parameter.
  void update(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode);
  // All queues are idle: what failed passes have left behind is cleared away.
  void forget_failed_passes();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort
