// SPDX-License-Identifier: Apache-2.0
// Adds the device to errors of CUDA and of its libraries. Used at the entry points of this backend.
#pragma once

#include <string>

#include "base/error.hpp"

namespace cohort {

// The message; prefixed with the device if the error is one of a device and does not name it.
inline std::string with_device(int device, const Error &error) {
  const std::string what = error.what();
  const bool is_devices = error.code() == Code::kDevice || error.code() == Code::kOutOfMemory;
  return is_devices && what.find("gpu(") == std::string::npos ? text("gpu(", device, "): ", what) : what;
}

template <typename Fn>
auto named(int device, const Fn &fn) {
  try {
    return fn();
  } catch (const Error &error) {
    throw Error(error.code(), with_device(device, error), error.subject());
  }
}

}  // namespace cohort
