// SPDX-License-Identifier: Apache-2.0
// Linear algebra, whose bodies are the same for all backends.
#include "cpu/op/compute_kernel.hpp"
//
#include "kernels/linalg_factors_kernels.hpp"
#include "kernels/linalg_products_kernels.hpp"
