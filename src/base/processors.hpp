// SPDX-License-Identifier: Apache-2.0
// The number of threads this process can run at once, and a pause instruction for spin loops.
#pragma once

namespace cohort {

// Processors in the calling thread's affinity mask, or fewer if the control group has a quota. At least 1.
int usable_processors();

// The default number of threads for each of `num_devices` devices that share the processors; at most OMP_NUM_THREADS if
// the user has set it. At least 1.
int default_threads(int num_devices = 1);

// Hints to the processor that this is a spin loop.
inline void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace cohort
