// SPDX-License-Identifier: Apache-2.0
// Steps of a GPU that run on the host: the kernel of cpu(0), between copies of its arrays. The thread that enqueues
// waits for what comes before, so this is for what only the host can do, or what is not worth a kernel
// (host_steps_cuda.cu says which, and why).
#pragma once

#include <memory>

#include "device/kernel.hpp"

namespace cohort {

std::unique_ptr<Kernel> make_host_step(StepSpec &spec);

// For operators that write to the inputs from `first_mutable` on: auxiliary states come behind the other inputs.
std::unique_ptr<Kernel> make_host_step(StepSpec &spec, size_t first_mutable);

}  // namespace cohort
