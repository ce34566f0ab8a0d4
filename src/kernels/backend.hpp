// SPDX-License-Identifier: Apache-2.0
// Functions that each backend defines for the kernels of this folder. A file of each backend includes the headers
// with kernels: src/cpu/op/movement_cpu.cc, cuda/op/movement_cuda.cu.
#pragma once

#include <memory>

#include "device/kernel_table.hpp"

namespace cohort {

// The kernel table of the backend that this is compiled for: COHORT_KERNEL(backend, slice, Slice).
KernelTable &backend_kernels();

void copy_bytes(const Lane &lane, void *to, const void *from, size_t bytes);  // does nothing if to == from
void zero_bytes(const Lane &lane, void *to, size_t bytes);

// Copies to the host's memory, and waits for that and for all work queued before it.
void read_back(const Lane &lane, void *to, const void *from, size_t bytes);
// Copies from the host's memory, which may be freed when this returns.
void write_through(const Lane &lane, void *to, const void *from, size_t bytes);

// A lane for kernels that are on_caller(): they run without a queue.
class CallerLane {
 public:
  CallerLane(const Context &context, bool on_caller);
  ~CallerLane();
  // Calls fn with a lane: `given` if it has a queue, else an own one. Work that fn enqueues on an own lane is done
  // when this returns.
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
