// SPDX-License-Identifier: Apache-2.0
// The functors of op/pointwise_math.hpp as kernels over whole arrays.
#pragma once

#include <memory>
#include <vector>

#include "device/kernel.hpp"
#include "op/pointwise.hpp"

namespace cohort {

// Output i is calls[i] of the inputs, which have its shape or the same layout. Takes any types; computes in the type
// that suits the outputs.
std::unique_ptr<Kernel> make_elementwise(const StepSpec &spec, const std::vector<PointwiseCall> &calls);

}  // namespace cohort
