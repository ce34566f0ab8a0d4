// SPDX-License-Identifier: Apache-2.0
// Measures the speed of this machine, for comparisons. It takes some 100 ms on the first call.
#pragma once

#include "device/device.hpp"

namespace cohort {

MachineRates cpu_rates(int num_threads);

}  // namespace cohort
