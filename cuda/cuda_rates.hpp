// SPDX-License-Identifier: Apache-2.0
// The peak rates of a GPU, from its clocks and units. Used by cuda_device.cc.
#pragma once

#include "device/device.hpp"

namespace cohort {

// Rates that are not known are 0.
MachineRates cuda_rates(int device) noexcept;

}  // namespace cohort
