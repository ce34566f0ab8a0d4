// SPDX-License-Identifier: Apache-2.0
// How many threads can run at once in this process.
#pragma once

namespace cohort {

// Processors of the calling thread's affinity mask, less where the control group has a quota. At least 1.
int usable_processors();

}  // namespace cohort
