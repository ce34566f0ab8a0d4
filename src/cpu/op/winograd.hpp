// SPDX-License-Identifier: Apache-2.0
// Convolutions with windows of 5 x 5 in Winograd's way, and their gradients: tiles of 4 x 4 results from 64 products
// for each pair of channels in place of 400. Used by the kernels of Convolution, where channels lie side by side, on
// processors with AVX-512. Rounding errors are those of oneDNN's 3 x 3 convolutions in this way, of the order of 1e-6
// of the largest result.
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
    int64_t tiles_y, tiles_x, group;  // tiles of a sample along its axes; that are computed together
    int64_t in_width() const;         // channels, with what fills up their vectors
    int64_t out_width() const;
  };

  // Null where this way is not open.
  static std::unique_ptr<Winograd> make(const ConvolutionSizes &sizes, const std::optional<ChannelRuns> &data,
                                        const std::optional<ChannelRuns> &result);

  // The weight and its gradient are row-major. A null bias or gradient is none.
  void forward(const float *data, const float *weight, const float *bias, float *result, void *scratch,
               const Lane &lane) const;
  // Gradients of filters and bias are the same bits with as many threads, the others with any number.
  void backward(const float *head, const float *data, const float *weight, float *data_gradient, float *weight_gradient,
                float *bias_gradient, void *scratch, const Lane &lane) const;
  size_t scratch_bytes(int num_threads, bool for_sums = false) const;  // for gradients of filters or bias

 private:
  explicit Winograd(const Sizes &sizes) : sizes_(sizes) {}
  size_t filter_bytes() const;  // of all filters as points
  size_t group_bytes() const;   // of a group of tiles as points
  size_t sum_bytes() const;     // of gradients of filters and bias that are parts of sums

  const Sizes sizes_;
};

}  // namespace cohort
