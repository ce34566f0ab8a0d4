// SPDX-License-Identifier: Apache-2.0
// Linear algebra, by the bodies that all backends share: one block per matrix, one thread per row or column; products
// of _linalg_gemm use tiles. cuSOLVER would be worth its size only for large single matrices.
#include "cuda/op/compute.cuh"
//
#include "kernels/linalg_factors_kernels.hpp"
#include "kernels/linalg_products_kernels.hpp"
