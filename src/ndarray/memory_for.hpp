// SPDX-License-Identifier: Apache-2.0
// Whoever finds no memory says for what: "argument 'fc_weight': gpu(0): no memory for 400 bytes; ...". For those who
// know what it is for, around those who know where it is.
#pragma once

#include "base/error.hpp"

namespace cohort {

// What fn() returns. An error of memory, or of a device that gives none any more, is given these words.
template <typename Fn, typename... Parts>
auto memory_for(const Fn &fn, const Parts &...what) {
  try {
    return fn();
  } catch (const Error &error) {
    if (error.code() != Code::kOutOfMemory && error.code() != Code::kDevice) throw;
    throw Error(error.code(), text(what..., ": ", error.what()), error.subject());
  }
}

}  // namespace cohort
