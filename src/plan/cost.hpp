// SPDX-License-Identifier: Apache-2.0
// Floating-point operations of steps, and the types that they multiply in: for traces and estimates of time. Used by
// plan and tape.
#pragma once

#include <vector>

#include "device/trace.hpp"
#include "op/op.hpp"

namespace cohort {

// Operations of a forward step of `op` with these shapes of inputs and outputs; 0 if the operator does not say.
double forward_flops(const Op &op, const Attrs &attrs, const Shapes &in, const Shapes &out);
// Operations of its backward step, with the shapes of the forward step: a product as large as the forward step's for
// each of the first two gradients, those of the data and the weight, that is wanted.
double backward_flops(const Op &op, const Attrs &attrs, const Shapes &in, const Shapes &out,
                      const std::vector<bool> &wanted);

// The type of the factors in products of a step whose first input has this dtype.
FactorType factors_of(Dtype dtype, const Context &context, bool tf32);

}  // namespace cohort
