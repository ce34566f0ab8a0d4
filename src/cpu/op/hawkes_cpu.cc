// SPDX-License-Identifier: Apache-2.0
// Hawkes processes, whose bodies are the same for all backends.
#include "cpu/op/compute_kernel.hpp"
//
#include "kernels/hawkes_kernels.hpp"
