// SPDX-License-Identifier: Apache-2.0
// Floating-point operations of steps, the types that they multiply in, and estimates of time: for traces and for what
// is worth several threads.
#pragma once

#include "device/trace.hpp"
#include "op/op.hpp"

namespace cohort {

// A rough estimate of a step's time on one core in nanoseconds: enough to tell a few microseconds from many.
double estimate_step_ns(double flops, double bytes);
// Whether a step takes long enough to be split over threads: about 100 microseconds on one core with AVX-512, by an
// estimate that is too long rather than too short. `op` is null for copies and sums of the plan's own.
bool is_worth_splitting(const Op *op, double flops, double bytes);

// The type of the factors in products of a step whose first input has this dtype.
FactorType factors_of(Dtype dtype, const Context &context, bool tf32);

}  // namespace cohort
