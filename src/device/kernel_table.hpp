// SPDX-License-Identifier: Apache-2.0
// The kernels of one backend, found by operator, element types and storage, in order of preference. A kernel file
// registers its own with COHORT_KERNEL.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/kernel.hpp"

namespace cohort {

// Filled before main, only read afterwards. Whatever reads it throws kInternal where an operator has two kernels of one
// name.
class KernelTable {
 public:
  KernelEntry &add(std::string op, KernelFactory make);
  std::vector<std::string> operators() const;  // that have kernels, in alphabetical order
  // In order of preference; none for an unknown operator.
  const std::vector<const KernelEntry *> &candidates(const std::string &op) const;
  // The first candidate behind `after` that takes the step, null if there is none. "NAME: why; " of each that is passed
  // over is put behind *refusals.
  const KernelEntry *find(const StepSpec &spec, std::string *refusals = nullptr,
                          const KernelEntry *after = nullptr) const;

 private:
  void sort_out() const;

  std::deque<KernelEntry> entries_;  // a deque: registrations hold references
  mutable std::once_flag once_;
  mutable std::unordered_map<std::string, std::vector<const KernelEntry *>> by_op_;
  mutable std::string twice_;  // what is registered twice, if anything is
};

KernelTable &cpu_kernels();   // src/cpu
KernelTable &cuda_kernels();  // cuda

template <typename K>
std::unique_ptr<Kernel> make_kernel_of(StepSpec &spec) {
  return std::make_unique<K>(spec);
}

}  // namespace cohort

// COHORT_KERNEL(cpu, softmax, SoftmaxRows): a class constructed from StepSpec &. What the kernel takes follows, if it
// is not any row-major array: COHORT_KERNEL(cpu, softmax, SoftmaxRows).dtypes(kFloatTypes); COHORT_KERNEL_BY(cpu,
// Convolution, factory function): the same with a function that makes it.
#define COHORT_KERNEL_CONCAT_(a, b) a##b
#define COHORT_KERNEL_CONCAT(a, b) COHORT_KERNEL_CONCAT_(a, b)
#define COHORT_KERNEL_BY(backend, op, ...)                                             \
  [[maybe_unused]] const auto &COHORT_KERNEL_CONCAT(kernel_registered_, __COUNTER__) = \
      ::cohort::backend##_kernels().add(#op, __VA_ARGS__)
#define COHORT_KERNEL(backend, op, ...) COHORT_KERNEL_BY(backend, op, ::cohort::make_kernel_of<__VA_ARGS__>)
