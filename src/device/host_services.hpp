// SPDX-License-Identifier: Apache-2.0
// Services that the library offers to a backend loaded from its own shared object, which has no CPU kernels and whose
// copy of the log has no listeners.
#pragma once

#include <memory>
#include <string>

#include "base/log.hpp"

namespace cohort {

class Device;
class Kernel;
struct StepSpec;

struct HostServices {
  std::shared_ptr<Device> (*cpu)();                                     // cpu(0); throws
  std::unique_ptr<Kernel> (*make_kernel)(Device &cpu, StepSpec &spec);  // Device::make_kernel
  void (*log)(LogLevel level, const std::string &message);              // to the library's log sinks
};

// A backend that exports this symbol receives the services before it creates a device.
constexpr char kHostServicesSymbol[] = "cohort_backend_host";
using TakeHostServices = void (*)(const HostServices *services);

}  // namespace cohort
