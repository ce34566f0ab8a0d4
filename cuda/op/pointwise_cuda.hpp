// SPDX-License-Identifier: Apache-2.0
// Functors of op/pointwise.hpp on whole arrays of a floating type.
#pragma once

#include <memory>
#include <vector>

#include "device/kernel.hpp"
#include "op/pointwise.hpp"

namespace cohort {

// Output i is what calls[i] makes of the inputs. All arrays have the type and the size of the first output.
std::unique_ptr<Kernel> make_pointwise(const StepSpec &spec, const std::vector<PointwiseCall> &calls);

}  // namespace cohort
