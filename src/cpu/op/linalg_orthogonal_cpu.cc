// SPDX-License-Identifier: Apache-2.0
// Orthogonal factors, whose bodies are the same for all backends.
#include "cpu/op/compute_kernel.hpp"
//
#include "kernels/linalg_orthogonal_kernels.hpp"
