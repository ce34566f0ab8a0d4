// SPDX-License-Identifier: Apache-2.0
// Makes and runs a CPU kernel without a plan and a queue, under the settings that those would give it.
#pragma once

#include <memory>
#include <string>

#include "cpu/parallel.hpp"
#include "device/device.hpp"
#include "device/kernel_table.hpp"
#include "support/unit.hpp"

namespace unit {

// Kernels that do not read layouts are given row-major inputs, as by a plan.
inline void row_major_if_unread(const cohort::KernelEntry &entry, cohort::StepSpec &spec) {
  for (cohort::TensorSpec &input : spec.inputs) {
    if (!entry.reads_layouts()) input.layout = nullptr;
  }
}

inline std::unique_ptr<cohort::Kernel> make_kernel(cohort::StepSpec &spec) {
  return cohort::get_device({cohort::DeviceType::kCpu, 0})->make_kernel(spec, nullptr, row_major_if_unread);
}

inline void run_kernel(const cohort::Kernel &kernel, const cohort::Args &args, int num_threads) {
  const cohort::FloatModeScope mode;
  const cohort::ThreadsScope threads(num_threads);
  kernel.run(args, {num_threads, nullptr});
}

}  // namespace unit
