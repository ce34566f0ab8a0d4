// SPDX-License-Identifier: Apache-2.0
// Gradients of small filters in float32, without a transform of the arrays: what cuDNN's heuristics recommend for them
// without Winograd's transform is slow where channels are few. Used by convolution_cudnn_cuda.cu.
#pragma once

#include "device/device.hpp"
#include "kernels/convolution_sizes.hpp"

namespace cohort {

class FilterGradient {
 public:
  // Filters of 3 x 3 with strides of 1 or 2 and of 1 x 1 with strides of 2, padded so that the result is as large as
  // the data, or half as large; rows are whole vectors of float32; channels first.
  static bool applies(const ConvolutionSizes &s);
  explicit FilterGradient(const ConvolutionSizes &s);
  size_t scratch_bytes() const { return size_t(num_parts_) * size_t(num_elements()) * sizeof(float); }
  // The order of sums depends on the sizes alone.
  void run(const Lane &lane, const float *head, const float *data, float *grad, void *scratch) const;

 private:
  int num_tiles() const;         // of output channels by channels of the data
  int64_t num_elements() const;  // of the filters
  const ConvolutionSizes sizes_;
  int num_spots_;  // tiles of places of the result
  int num_parts_;  // of the work; each adds up a gradient of its own
};

}  // namespace cohort
