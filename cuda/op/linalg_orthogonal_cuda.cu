// SPDX-License-Identifier: Apache-2.0
// Orthogonal factors, whose bodies are the same for all backends: a block for each matrix.
#include "cuda/op/compute.cuh"
//
#include "kernels/linalg_orthogonal_kernels.hpp"
