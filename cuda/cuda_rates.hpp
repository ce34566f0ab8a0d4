// SPDX-License-Identifier: Apache-2.0
// What a GPU does at most, by its clocks and units. Used by cuda_device.cc.
#pragma once

#include "device/device.hpp"

namespace cohort {

// Zeros where it is not known.
MachineRates cuda_rates(int device) noexcept;

}  // namespace cohort
