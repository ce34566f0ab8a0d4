// SPDX-License-Identifier: Apache-2.0
// How many threads can run at once in this process, and how one waits for another without sleeping.
#pragma once

namespace cohort {

// Processors of the calling thread's affinity mask, less where the control group has a quota. At least 1.
int usable_processors();

// Threads of one of so many devices that share the processors and were given no number: no more than OMP_NUM_THREADS
// where the host's user has set it. At least 1.
int default_threads(int num_devices = 1);

// Tells the processor that this is a loop that looks out for another thread.
inline void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace cohort
