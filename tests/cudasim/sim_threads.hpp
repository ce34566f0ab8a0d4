// SPDX-License-Identifier: Apache-2.0
// The threads of a kernel as fibers; for the memory, which has to know when one of them faults.
#pragma once

namespace cudasim {

bool threads_running();          // a kernel runs on this thread, which has the simulator
void note_fault(void *address);  // by the thread that runs
[[noreturn]] void leave_at_fault();

}  // namespace cudasim
