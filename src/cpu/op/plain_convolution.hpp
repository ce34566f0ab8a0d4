// SPDX-License-Identifier: Apache-2.0
// Convolution as plain loops, for element types and cases that oneDNN lacks. Used by the kernels of Convolution and of
// Deconvolution, whose forward pass is the backward pass to the data of a convolution.
#pragma once

#include <array>
#include <memory>

#include "base/shape.hpp"
#include "device/kernel.hpp"
#include "op/op.hpp"

namespace cohort {

// The sizes of a convolution over up to three spatial axes (missing ones have length 1), and how far apart neighbours
// along each axis lie in memory, in elements.
struct ConvolutionSizes {
  using Axes = std::array<int64_t, 3>;
  int64_t batch, groups, in_channels, out_channels;  // channels of one group
  Axes in, out, kernel, stride, dilate, pad;
  int64_t in_batch_step, in_channel_step, out_batch_step, out_channel_step, weight_out_step, weight_in_step;
  Axes in_step, out_step, weight_step;
};

// `data` and `result` are the input and output of the convolution, `weight` its filters; all row-major, with the
// channels in front of the spatial axes or, `last`, behind them.
ConvolutionSizes convolution_sizes(const Shape &data, const Shape &weight, const Shape &result, const Tuple &stride,
                                   const Tuple &dilate, const Tuple &pad, int64_t groups, bool last);

// Each is one pass over row-major arrays of floating type `dtype`; a null bias is none. Every output element is one sum
// in a fixed order, so that results do not depend on the number of threads.
void convolve(const ConvolutionSizes &s, Dtype dtype, const void *data, const void *weight, const void *bias,
              void *result, const Lane &lane);
// `bias`, where given, is added to each channel of the data gradient (a deconvolution's bias).
void convolve_backward_data(const ConvolutionSizes &s, Dtype dtype, const void *head, const void *weight,
                            const void *bias, void *data_grad, const Lane &lane);
void convolve_backward_weight(const ConvolutionSizes &s, Dtype dtype, const void *head, const void *data,
                              void *weight_grad, const Lane &lane);
// Sums of each channel of `values`, which has the sizes of the convolution's result or, of_data, of its data.
void sum_channels(const ConvolutionSizes &s, Dtype dtype, bool of_data, const void *values, void *sums,
                  const Lane &lane);

}  // namespace cohort
