// SPDX-License-Identifier: Apache-2.0
// Convolutions with windows of 5 x 5 by Winograd's method, and their gradients: a tile of 4 x 4 results takes 64
// products for each pair of channels in place of 400. Used by the kernels of Convolution, where channels are
// contiguous, on processors with AVX-512. Rounding errors are those of oneDNN's 3 x 3 convolutions by this method,
// about 1e-6 of the largest result.
#pragma once

#include <memory>
#include <optional>

#include "cpu/op/plain_convolution.hpp"

namespace cohort {

class Winograd {
 public:
  struct Sizes {
    ConvolutionSizes s;
    ChannelRuns data, result;
    int64_t tiles_y, tiles_x, group;  // tiles_y, tiles_x: tiles of a sample; group: tiles computed together
    int64_t in_width() const;         // channels, rounded up to whole vectors
    int64_t out_width() const;
  };

  // Null if the method does not apply.
  static std::unique_ptr<Winograd> make(const ConvolutionSizes &sizes, const std::optional<ChannelRuns> &data,
                                        const std::optional<ChannelRuns> &result);

  // The weight and its gradient are row-major. Null biases and gradients are skipped.
  void forward(const float *data, const float *weight, const float *bias, float *result, void *scratch,
               const Lane &lane) const;
  // The gradients of filters and bias are bit-identical for the same number of threads, the others for any number.
  void backward(const float *head, const float *data, const float *weight, float *data_gradient, float *weight_gradient,
                float *bias_gradient, void *scratch, const Lane &lane) const;
  size_t scratch_bytes(int num_threads, bool for_sums = false) const;  // for_sums: for gradients of filters or bias

 private:
  explicit Winograd(const Sizes &sizes) : sizes_(sizes) {}
  size_t filter_bytes() const;  // of all transformed filters
  size_t group_bytes() const;   // of a transformed group of tiles
  size_t sum_bytes() const;     // of partial sums of the gradients of filters and bias

  const Sizes sizes_;
};

}  // namespace cohort
