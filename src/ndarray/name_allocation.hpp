// SPDX-License-Identifier: Apache-2.0
// Adds to out-of-memory errors what the memory was for: "argument 'fc_weight': gpu(0): no memory for 400 bytes; ...".
// Wraps an allocation where its purpose is known.
#pragma once

#include "base/error.hpp"

namespace cohort {

// Returns fn(). Prefixes `what` to errors of memory, and of devices that failed to provide it.
template <typename Fn, typename... Parts>
auto name_allocation(const Fn &fn, const Parts &...what) {
  try {
    return fn();
  } catch (const Error &error) {
    if (error.code() != Code::kOutOfMemory && error.code() != Code::kDevice) throw;
    throw Error(error.code(), text(what..., ": ", error.what()), error.subject());
  }
}

}  // namespace cohort
