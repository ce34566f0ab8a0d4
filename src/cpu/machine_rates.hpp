// SPDX-License-Identifier: Apache-2.0
// What this machine can do, for those who compare. Measured when it is first asked for, in some 100 ms.
#pragma once

#include "device/device.hpp"

namespace cohort {

MachineRates cpu_rates(int num_threads);

}  // namespace cohort
