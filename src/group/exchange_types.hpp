// SPDX-License-Identifier: Apache-2.0
// What a group gives its exchange to work on.
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

// Whether a parameter has one shape on all devices, and so sums and means; one whose shape follows the batch may not.
bool have_same_shape(const std::vector<NDArray> &of_devices);
void check_same_shape(const std::string &name, const std::vector<NDArray> &of_devices);  // kShape

// A device of the group. Arrays of contexts that neither the host nor its own queue reaches are those of layers that
// group2ctx has placed elsewhere.
struct ExchangeDevice {
  Context context;
  std::shared_ptr<Queue> queue;                                    // the order of all its work
  std::shared_ptr<Timeline> timeline;                              // of it and the others
  std::vector<std::pair<Context, std::shared_ptr<Queue>>> others;  // of such contexts

  // Where work on an array of this device is queued. kInternal: nowhere.
  const std::shared_ptr<Queue> &queue_for(const NDArray &array) const;
  bool operator==(const ExchangeDevice &other) const {
    return context == other.context && queue == other.queue && others == other.others;
  }
};
using ExchangeDevices = std::vector<ExchangeDevice>;

// The label of the exchange's work in queues: errors that have it as their subject follow from others.
extern const char kExchangeLabel[];
// The same for traces.
const WorkInfo *exchange_info();

}  // namespace cohort
