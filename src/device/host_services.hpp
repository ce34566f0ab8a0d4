// SPDX-License-Identifier: Apache-2.0
// What a backend in a shared object of its own may ask of the library that loads it: it has no kernels of the CPU's,
// and its own log has no listeners.
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
  void (*log)(LogLevel level, const std::string &message);              // to those who want to hear it
};

// The symbol by which such a backend is told, before it makes a device; one that wants nothing of it has none.
constexpr char kHostServicesSymbol[] = "cohort_backend_host";
using TakeHostServices = void (*)(const HostServices *services);

}  // namespace cohort
