// SPDX-License-Identifier: Apache-2.0
// Kernels of src/kernels that move elements.
#include "kernels/array_kernels.hpp"
#include "kernels/diag_kernels.hpp"
#include "kernels/slice_kernels.hpp"
#include "kernels/space_to_depth_kernels.hpp"
#include "kernels/transpose_kernels.hpp"
