// SPDX-License-Identifier: Apache-2.0
// Registers recordings with the trace. Used by the two alone.
#pragma once

namespace cohort {

class Recording;

void add_recording(Recording *recording);
void remove_recording(Recording *recording) noexcept;  // nothing is added to it after this returns

}  // namespace cohort
