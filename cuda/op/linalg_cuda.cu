// SPDX-License-Identifier: Apache-2.0
// Linear algebra, whose bodies are the same for all backends: a block for each matrix, whose rows or
// columns are its threads'; products of _linalg_gemm are tiles. cuSOLVER would be worth its size for large single
// matrices alone.
#include "cuda/op/compute.cuh"
//
#include "kernels/linalg_factors_kernels.hpp"
#include "kernels/linalg_products_kernels.hpp"
