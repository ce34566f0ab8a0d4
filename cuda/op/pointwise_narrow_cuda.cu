// SPDX-License-Identifier: Apache-2.0
// The point-wise kernels in 16 bits: a file of their own, so that they compile beside the others.
#include "cuda/op/pointwise_kernels.cuh"

namespace cohort::pointwise_kernels {

template Launch<Float16> launch_of<Float16>(PointwiseCode code);
template Launch<Bfloat16> launch_of<Bfloat16>(PointwiseCode code);

}  // namespace cohort::pointwise_kernels
