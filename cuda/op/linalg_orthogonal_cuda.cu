// SPDX-License-Identifier: Apache-2.0
// Orthogonal factors, by the bodies that all backends share: one block per matrix.
#include "cuda/op/compute.cuh"
//
#include "kernels/linalg_orthogonal_kernels.hpp"
