// SPDX-License-Identifier: Apache-2.0
// Threads that help a caller to copy host memory, which one thread does far slower than the bus to a GPU. Started when
// first needed, shared by all devices. Used by cuda_upload.cc.
#pragma once

#include <functional>

namespace cohort {

// The threads that run_together() can use, the calling one included. At least 1.
int num_copy_threads();

// Calls fn on the calling thread and, at the same time, on up to num_threads - 1 others that are free; returns when all
// calls have returned. fn shares out its work by itself, and must not throw.
void run_together(int num_threads, const std::function<void()> &fn);

}  // namespace cohort
