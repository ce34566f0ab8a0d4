// SPDX-License-Identifier: Apache-2.0
// Convolution by columns and matrix products, for element types and cases that oneDNN lacks. Used by the kernels of
// Convolution and of Deconvolution, whose forward pass is the backward pass to the data of a convolution.
#pragma once

#include <string>

#include "device/kernel.hpp"
#include "kernels/convolution_sizes.hpp"

namespace cohort {

// Each function is one pass over row-major arrays of float32 or float64; a null bias counts as zeros. Every output
// element is one sum in a fixed order. Results in float64 do not depend on the number of threads.
class PlainConvolution {
 public:
  PlainConvolution(const ConvolutionSizes &sizes, Dtype dtype, int num_threads);
  size_t forward_scratch_bytes() const;
  size_t data_scratch_bytes() const;
  size_t weight_scratch_bytes() const;
  void forward(const void *data, const void *weight, const void *bias, void *result, void *scratch,
               const Lane &lane) const;
  // `bias`, where given, is added to each channel of the data gradient (a deconvolution's bias).
  void backward_data(const void *head, const void *weight, const void *bias, void *data_grad, void *scratch,
                     const Lane &lane) const;
  void backward_weight(const void *head, const void *data, void *weight_grad, void *scratch, const Lane &lane) const;
  const ConvolutionSizes &sizes() const { return sizes_; }
  Dtype dtype() const { return dtype_; }

 private:
  const ConvolutionSizes sizes_;
  const Dtype dtype_;
  const int num_threads_;
};

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
