// SPDX-License-Identifier: Apache-2.0
// Who records what this process does: between the trace and recordings alone.
#pragma once

namespace cohort {

class Recording;

void add_recording(Recording *recording);
void remove_recording(Recording *recording) noexcept;  // nothing is added to it any more

}  // namespace cohort
