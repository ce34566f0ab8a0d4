// SPDX-License-Identifier: Apache-2.0
// What kernels that are written once for all backends find in each of them. The headers of this room hold such kernels,
// registrations included; a file of each backend includes them (src/cpu/op/movement_cpu.cc,
// cuda/op/movement_cuda.cu).
#pragma once

#include <memory>

#include "device/kernel_table.hpp"

namespace cohort {

// The kernels of the backend that is compiled: COHORT_KERNEL(backend, slice, Slice).
KernelTable &backend_kernels();

void copy_bytes(const Lane &lane, void *to, const void *from, size_t bytes);  // nothing if they are one
void zero_bytes(const Lane &lane, void *to, size_t bytes);

// To the host's memory. The host waits for it, and so for all before it.
void read_back(const Lane &lane, void *to, const void *from, size_t bytes);
// From the host's memory, which may go when this returns.
void write_through(const Lane &lane, void *to, const void *from, size_t bytes);

// Kernels that are on_caller() are run without a queue: where one needs a lane nevertheless, this has it.
class CallerLane {
 public:
  CallerLane(const Context &context, bool on_caller);
  ~CallerLane();
  // Calls fn with a lane: the given one if it has a queue. What fn enqueues on an own one is done when this returns.
  template <typename Fn>
  void run(const Lane &given, const Fn &fn) const {
    call(
        given, [](const void *own, const Lane &lane) { (*static_cast<const Fn *>(own))(lane); }, &fn);
  }

 private:
  void call(const Lane &given, void (*fn)(const void *own, const Lane &lane), const void *own) const;
  class Own;
  std::unique_ptr<Own> own_;
};

}  // namespace cohort
