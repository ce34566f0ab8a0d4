// SPDX-License-Identifier: Apache-2.0
// The kernels of one backend, found by operator name. A kernel file registers itself with COHORT_KERNEL.
#pragma once

#include <string>
#include <unordered_map>

#include "device/kernel.hpp"

namespace cohort {

class KernelTable {
 public:
  bool add(const KernelEntry &entry) { return entries_.emplace(entry.op, entry).second; }
  const KernelEntry *find(const std::string &op) const {
    const auto found = entries_.find(op);
    return found == entries_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string, KernelEntry> entries_;
};

KernelTable &cpu_kernels();   // src/cpu
KernelTable &cuda_kernels();  // cuda

template <typename K>
std::unique_ptr<Kernel> make_kernel_of(StepSpec &spec) {
  return std::make_unique<K>(spec);
}

}  // namespace cohort

// COHORT_KERNEL(cpu, softmax, SoftmaxRows): a class constructed from StepSpec &, row-major tensors only.
// COHORT_KERNEL_EX(cpu, Convolution, factory function, any_layout, fuses)
#define COHORT_KERNEL_EX(backend, op, factory, any_layout, fuses)    \
  [[maybe_unused]] const bool kernel_##backend##_##op##_registered = \
      ::cohort::backend##_kernels().add({#op, factory, any_layout, fuses})
#define COHORT_KERNEL(backend, op, type) COHORT_KERNEL_EX(backend, op, ::cohort::make_kernel_of<type>, false, 0u)
