// SPDX-License-Identifier: Apache-2.0
// The threads of a kernel, run as fibers. Used by sim_memory.cc to handle their faults.
#pragma once

namespace cudasim {

bool threads_running();          // whether a kernel runs on this thread, which then holds the mutex
void note_fault(void *address);  // by the running fiber
[[noreturn]] void leave_at_fault();

}  // namespace cudasim
