// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements, the same for all backends.
#include "cuda/cuda_launch.hpp"
//
#include "kernels/array_kernels.hpp"
#include "kernels/diag_kernels.hpp"
#include "kernels/slice_kernels.hpp"
#include "kernels/space_to_depth_kernels.hpp"
#include "kernels/transpose_kernels.hpp"
