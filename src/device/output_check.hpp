// SPDX-License-Identifier: Apache-2.0
// COHORT_CHECK=outputs: detects kernels that leave elements of an output unwritten or rely on cleared scratch memory.
// Used where kernels are created: by plan and for operators applied at once.
#pragma once

#include <memory>

#include "device/kernel.hpp"

namespace cohort {

// Wraps the kernel. Before each run, outputs and scratch memory are filled with a pattern (NaN as a float); an output
// element that still holds it afterwards is an error. Outputs that share memory with an input are not checked. `spec`
// is what the kernel was made from; the memory must be accessible to the host.
std::unique_ptr<Kernel> with_checked_outputs(std::unique_ptr<Kernel> kernel, const StepSpec &spec);

}  // namespace cohort
