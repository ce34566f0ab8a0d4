// SPDX-License-Identifier: Apache-2.0
// Which queue a thread works for. Work that calls the host, which may call the library again, must not wait for
// anything queued behind itself.
#pragma once

namespace cohort {

inline thread_local const void *working_queue = nullptr;  // the queue whose work this thread is doing; null: none

}  // namespace cohort
