// SPDX-License-Identifier: Apache-2.0
// Errors at the boundary. Inside, functions throw; at the boundary each call runs in guarded(), which answers 0, or -1
// and leaves the message for MXGetLastError() on the same thread.
#pragma once

#include <string>
#include <utility>

#include "cohort/cohort.hpp"

namespace cohort_mxnet {

void set_last_error(const char *message) noexcept;
const char *last_error() noexcept;

[[noreturn]] void fail(const std::string &message);

// For out parameters and other pointers that a call cannot do without.
template <typename T>
T &required(T *pointer, const char *name) {
  if (!pointer) fail(std::string(name) + " is NULL");
  return *pointer;
}

inline void require(const void *pointer, const char *name) {
  if (!pointer) fail(std::string(name) + " is NULL");
}

// A callback as the function that it is.
template <typename Function>
Function as_function(int (*callback)()) {
  return reinterpret_cast<Function>(reinterpret_cast<void (*)()>(callback));
}

// The answer of a function that Cohort does not have.
int not_implemented(const char *function) noexcept;

int report_current_exception() noexcept;

template <typename Body>
int guarded(Body &&body) noexcept {
  try {
    std::forward<Body>(body)();
    return 0;
  } catch (...) {
    return report_current_exception();
  }
}

}  // namespace cohort_mxnet
