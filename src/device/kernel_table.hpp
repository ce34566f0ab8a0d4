// SPDX-License-Identifier: Apache-2.0
// The kernels of one backend, looked up by operator and ordered by preference. A kernel file registers its kernels with
// COHORT_KERNEL.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/kernel.hpp"

namespace cohort {

// Filled before main, read-only afterwards. Reading throws kInternal if an operator has two kernels of the same name.
class KernelTable {
 public:
  KernelEntry &add(std::string op, KernelFactory make);
  std::vector<std::string> operators() const;  // operators that have kernels, alphabetically
  // In order of preference; empty for an unknown operator.
  const std::vector<const KernelEntry *> &candidates(const std::string &op) const;
  // The first candidate after `after` that accepts the step, or null. Appends "NAME: why; " to *refusals for each
  // candidate passed over.
  const KernelEntry *find(const StepSpec &spec, std::string *refusals = nullptr,
                          const KernelEntry *after = nullptr) const;

 private:
  void build_index() const;

  std::deque<KernelEntry> entries_;  // a deque: registrations hold references
  mutable std::once_flag once_;
  mutable std::unordered_map<std::string, std::vector<const KernelEntry *>> by_op_;
  mutable std::string duplicates_;  // names registered twice, if any
};

KernelTable &cpu_kernels();   // src/cpu
KernelTable &cuda_kernels();  // cuda

template <typename K>
std::unique_ptr<Kernel> make_kernel_of(StepSpec &spec) {
  return std::make_unique<K>(spec);
}

}  // namespace cohort

// COHORT_KERNEL(cpu, softmax, SoftmaxRows): a class constructed from StepSpec &. Restrictions follow, if it does not
// accept every row-major array: COHORT_KERNEL(cpu, softmax, SoftmaxRows).dtypes(kFloatTypes);
// COHORT_KERNEL_BY(cpu, Convolution, function): the same, constructed by a function.
#define COHORT_KERNEL_CONCAT_(a, b) a##b
#define COHORT_KERNEL_CONCAT(a, b) COHORT_KERNEL_CONCAT_(a, b)
#define COHORT_KERNEL_BY(backend, op, ...)                                             \
  [[maybe_unused]] const auto &COHORT_KERNEL_CONCAT(kernel_registered_, __COUNTER__) = \
      ::cohort::backend##_kernels().add(#op, __VA_ARGS__)
#define COHORT_KERNEL(backend, op, ...) COHORT_KERNEL_BY(backend, op, ::cohort::make_kernel_of<__VA_ARGS__>)
