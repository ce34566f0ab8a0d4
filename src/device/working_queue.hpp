// SPDX-License-Identifier: Apache-2.0
// Whose work a thread does. Work that calls the host, which may call the library again, must not wait for what is
// queued behind it.
#pragma once

namespace cohort {

inline thread_local const void *working_queue = nullptr;  // a queue's work that this thread does now; null: none's

}  // namespace cohort
