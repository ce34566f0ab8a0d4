// SPDX-License-Identifier: Apache-2.0
// The parameters and devices that a group gives its exchange.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "ndarray/ndarray.hpp"

namespace cohort {

// A parameter that has a gradient, on every device.
struct ExchangeParam {
  std::string name;
  int position = 0;  // in in_network_order()
  std::vector<NDArray> weights, grads;
};
using ExchangeParams = std::vector<ExchangeParam>;

// Whether the arrays have one shape on all devices, so that they can be summed or averaged; an array whose shape
// follows the batch may not.
bool have_same_shape(const std::vector<NDArray> &of_devices);
void check_same_shape(const std::string &name, const std::vector<NDArray> &of_devices);  // kShape

// A device of the group. If group2ctx has placed layers on other contexts, these have queues in `others`; arrays on the
// host belong to `queue` if the device is on the host.
struct ExchangeDevice {
  Context context;
  std::shared_ptr<Queue> queue;                                    // orders all work of the device
  std::shared_ptr<Timeline> timeline;                              // of all these queues
  std::vector<std::pair<Context, std::shared_ptr<Queue>>> others;  // queues of other contexts

  // The queue for work on an array of this device. kInternal if there is none.
  const std::shared_ptr<Queue> &queue_for(const NDArray &array) const;
  bool operator==(const ExchangeDevice &other) const {
    return context == other.context && queue == other.queue && others == other.others;
  }
};
using ExchangeDevices = std::vector<ExchangeDevice>;

// The label of the exchange's work in queues: an error with this subject is a consequence of another error.
extern const char kExchangeLabel[];
// The same for traces.
const WorkInfo *exchange_info();

}  // namespace cohort
