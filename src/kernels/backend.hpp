// SPDX-License-Identifier: Apache-2.0
// What kernels that are written once for all backends find in each of them. The headers of this room hold such kernels,
// registrations included; a file of each backend includes them (src/cpu/op/movement_cpu.cc,
// cuda/op/movement_cuda.cu).
#pragma once

#include "device/kernel_table.hpp"

namespace cohort {

// The kernels of the backend that is compiled: COHORT_KERNEL(backend, slice, Slice).
KernelTable &backend_kernels();

void copy_bytes(const Lane &lane, void *to, const void *from, size_t bytes);  // nothing if they are one
void zero_bytes(const Lane &lane, void *to, size_t bytes);

}  // namespace cohort
