// SPDX-License-Identifier: Apache-2.0
// COHORT_CHECK=outputs: kernels that leave elements of an output as they found them, or take scratch memory for
// cleared, are found out. For whoever makes kernels: plan and applied operators.
#pragma once

#include <memory>

#include "device/kernel.hpp"

namespace cohort {

// The kernel, which from now on finds its outputs and its scratch memory full of a pattern (as a floating number it is
// not a number), and fails at an element of an output that still has it afterwards. An output in the memory of an input
// is left as it is. `spec` is what the kernel was made from; the host must see the memory.
std::unique_ptr<Kernel> with_checked_outputs(std::unique_ptr<Kernel> kernel, const StepSpec &spec);

}  // namespace cohort
