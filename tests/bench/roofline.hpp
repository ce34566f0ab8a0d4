// SPDX-License-Identifier: Apache-2.0
// What a step of a workload does, beside what the machine would take for it at least.
#pragma once

#include <string>

#include "measured.hpp"

namespace bench {

// Runs some more steps, traced, and says of one of them, as a JSON object: how many pieces of work the queues were
// given, their operations and bytes, the least time for these by the devices' rates, and how near `ms_of_step`, which
// was measured without a trace, comes to it. Each kind of work is a line on stderr.
std::string roofline_of(Measured &work, const Options &options, double ms_of_step);

}  // namespace bench
