// SPDX-License-Identifier: Apache-2.0
// Sums over devices, which see each other's memory in some way of their own. Made by Device::make_communicator(), used
// by group/collective_reducer.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "device/device.hpp"

namespace cohort {

// An array of one device, and where the sum of those of all devices goes.
struct Summand {
  const void *from;
  void *to;
  int64_t count;
  Dtype dtype;
};

class Communicator {
 public:
  // What is summed at a time. All devices have the same counts and types.
  struct Sums {
    std::vector<std::vector<Summand>> of;  // [device][array]
    const char *label = "";                // for errors
  };
  using Failed = void (*)(const void *owner, const char *message);
  using Events = std::vector<std::shared_ptr<Event>>;  // of each device

  virtual ~Communicator() = default;
  // Queues sums that begin when `ready` of all devices are done, beside what the devices' own queues do, and returns at
  // once. `owner` is held until they are done, with all that they touch; `failed` is called if they are not, because a
  // device has failed or has not come in time, before those go on who wait for them. The events are done when the sums
  // are there. One group of devices comes at a time to this; several threads may. Throws if it is known to have failed.
  virtual Events all_reduce(const Sums &sums, const Events &ready, std::shared_ptr<const void> owner,
                            Failed failed) = 0;
  // It has failed for good: who wants to go on makes another one.
  virtual bool broken() const = 0;
};

}  // namespace cohort
