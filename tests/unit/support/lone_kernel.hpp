// SPDX-License-Identifier: Apache-2.0
// Makes and runs a kernel of the CPU without a plan and a queue, under the settings that those would give it.
#pragma once

#include <memory>
#include <string>

#include "cpu/parallel.hpp"
#include "device/device.hpp"
#include "device/kernel_table.hpp"
#include "support/unit.hpp"

namespace unit {

inline std::unique_ptr<cohort::Kernel> make_kernel(cohort::StepSpec &spec) {
  const auto device = cohort::get_device({cohort::DeviceType::kCpu, 0});
  const cohort::KernelEntry *entry = device->find_kernel(spec.op);
  if (!entry) fail(__FILE__, __LINE__, "there is no kernel " + spec.op);
  return device->make_kernel(*entry, spec);
}

inline void run_kernel(const cohort::Kernel &kernel, const cohort::Args &args, int num_threads) {
  const cohort::FloatModeScope mode;
  const cohort::ThreadsScope threads(num_threads);
  kernel.run(args, {num_threads, nullptr});
}

}  // namespace unit
