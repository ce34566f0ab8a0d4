// SPDX-License-Identifier: Apache-2.0
// Convolution as plain loops, for element types and cases that oneDNN lacks. Used by the kernels of Convolution and of
// Deconvolution, whose forward pass is the backward pass to the data of a convolution.
#pragma once

#include <string>

#include "device/kernel.hpp"
#include "kernels/convolution_sizes.hpp"

namespace cohort {

// Each function is one pass over row-major arrays of floating type `dtype`; a null bias counts as zeros. Every output
// element is one sum in a fixed order, so that results do not depend on the number of threads.
void convolve(const ConvolutionSizes &s, Dtype dtype, const void *data, const void *weight, const void *bias,
              void *result, const Lane &lane);
// `bias`, where given, is added to each channel of the data gradient (a deconvolution's bias).
void convolve_backward_data(const ConvolutionSizes &s, Dtype dtype, const void *head, const void *weight,
                            const void *bias, void *data_grad, const Lane &lane);
void convolve_backward_weight(const ConvolutionSizes &s, Dtype dtype, const void *head, const void *data,
                              void *weight_grad, const Lane &lane);

// Why oneDNN must not compute the weight's gradient of a backward step; empty if it may. At some borders it reads or
// writes outside its arrays (oneDNN 2.6).
std::string lacks_weight_gradient(const ConvolutionSizes &s, int num_axes, Dtype dtype);

// The layout of activations: runs of contiguous channels at each place of each sample. Steps are in elements.
struct ChannelRuns {
  int64_t run, run_step, batch_step;
  ConvolutionSizes::Axes step;
  int64_t channel(int64_t c) const { return c / run * run_step + c % run; }
};
// Sums of each channel of `values`, which has the shape of the convolution's result or, of_data, of its data. It lies
// row-major, or as `runs` says.
void sum_channels(const ConvolutionSizes &s, Dtype dtype, bool of_data, const void *values, void *sums,
                  const Lane &lane);
void sum_channels(const ConvolutionSizes &s, const ChannelRuns &runs, Dtype dtype, bool of_data, const void *values,
                  void *sums, const Lane &lane);

}  // namespace cohort
