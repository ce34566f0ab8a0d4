// SPDX-License-Identifier: Apache-2.0
// Kernels of images whose bodies are the same for all backends.
#include "cpu/op/compute_kernel.hpp"
//
#include "kernels/image_border_kernels.hpp"
#include "kernels/image_colors_kernels.hpp"
#include "kernels/image_size_kernels.hpp"
