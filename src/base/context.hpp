// SPDX-License-Identifier: Apache-2.0
// A context names a device: its type and its id (contract CTX-01..03).
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>

namespace cohort {

enum class DeviceType : int32_t { kCpu = 1, kGpu = 2, kCpuPinned = 3, kCpuShared = 5 };

struct Context {
  DeviceType type = DeviceType::kCpu;
  int32_t id = 0;

  bool operator==(const Context &other) const { return type == other.type && id == other.id; }
  bool operator!=(const Context &other) const { return !(*this == other); }
  bool operator<(const Context &other) const { return std::tie(type, id) < std::tie(other.type, other.id); }
  // True: host code may access memory of this device directly.
  bool on_host() const { return type != DeviceType::kGpu; }
};

Context make_context(int32_t type, int32_t id);  // throws kInvalidArgument: unknown type, negative id
Context parse_context(const std::string &text);  // "cpu(0)"; nothing else is accepted
std::ostream &operator<<(std::ostream &out, const Context &context);

}  // namespace cohort
