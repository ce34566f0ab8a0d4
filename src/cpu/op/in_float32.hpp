// SPDX-License-Identifier: Apache-2.0
// Layers on arrays of 16-bit floats, computed by the layer's kernel for float32 on converted copies. Used by
// Convolution, Deconvolution and FullyConnected for float16, and for bfloat16 on processors without units for it.
#pragma once

#include <memory>
#include <string>

#include "device/kernel.hpp"

namespace cohort {

inline constexpr DtypeSet kNarrowTypes{Dtype::kFloat16, Dtype::kBfloat16};

// Makes a kernel that converts all inputs to float32, runs the step's kernel for float32, and rounds the results once.
// Post-operations follow on the rounded result, as steps of their own would.
std::unique_ptr<Kernel> make_in_float32(StepSpec &spec);

}  // namespace cohort
