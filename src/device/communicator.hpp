// SPDX-License-Identifier: Apache-2.0
// Sums arrays over several devices (all-reduce). Created by Device::make_communicator(), used by
// group/collective_reducer.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "device/device.hpp"

namespace cohort {

// One device's array, and where the sum over all devices goes.
struct Summand {
  const void *from;
  void *to;
  int64_t count;
  Dtype dtype;
};

class Communicator {
 public:
  // The arrays of one all-reduce. All devices have the same counts and types.
  struct Sums {
    std::vector<std::vector<Summand>> of;  // [device][array]
    const char *label = "";                // for errors
  };
  using Failed = void (*)(const void *owner, const char *message);
  using Events = std::vector<std::shared_ptr<Event>>;  // one per device

  virtual ~Communicator() = default;
  // Queues sums that start when all `ready` events are done, independently of the devices' own queues, and returns at
  // once. The returned events fire when the sums are complete. `owner` keeps everything involved alive until then.
  // `failed` is called, before those events fire, if a device fails or does not join in time. Only one group of devices
  // may use this at a time; several threads may. Throws if the communicator is known to be broken.
  virtual Events all_reduce(const Sums &sums, const Events &ready, std::shared_ptr<const void> owner,
                            Failed failed) = 0;
  // It has failed permanently: create another one.
  virtual bool broken() const = 0;
};

}  // namespace cohort
