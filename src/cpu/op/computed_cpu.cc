// SPDX-License-Identifier: Apache-2.0
// Kernels whose bodies are the same for all backends.
#include "cpu/op/compute_kernel.hpp"
//
#include "kernels/box_coding_kernels.hpp"
#include "kernels/boxes_kernels.hpp"
#include "kernels/control_flow_kernels.hpp"
#include "kernels/image_resize_kernels.hpp"
#include "kernels/interleaved_attention_kernels.hpp"
#include "kernels/psroi_pooling_kernels.hpp"
#include "kernels/random_pdf_kernels.hpp"
#include "kernels/roi_pooling_kernels.hpp"
#include "kernels/scale_gradient_kernels.hpp"
#include "kernels/scaling_kernels.hpp"
#include "kernels/spatial_sampler_kernels.hpp"
