// SPDX-License-Identifier: Apache-2.0
// Convolutions of images of one channel with a number of filters that is no multiple of 16: oneDNN (2.6) pads it to
// vectors, and takes 1.4 times as long for 20 filters of 5 x 5, 1.6 times for 6; with 3 channels it is as fast. Used
// by the kernel of Convolution on processors with AVX-512.
#pragma once

#include <memory>
#include <optional>

#include "cpu/op/plain_convolution.hpp"

namespace cohort {

class ImageConvolution {
 public:
  // Null if it does not apply or has no advantage. The result lies channels-last.
  static std::unique_ptr<ImageConvolution> make(const ConvolutionSizes &sizes, const std::optional<ChannelRuns> &data,
                                                const std::optional<ChannelRuns> &result);

  // The weight lies as the sizes say. A null bias counts as zeros. Each element is one sum in a fixed order.
  void forward(const float *data, const float *weight, const float *bias, float *result, void *scratch,
               const Lane &lane) const;
  size_t scratch_bytes(int num_threads) const;

  struct Sizes {
    ConvolutionSizes s;
    ChannelRuns data, result;
    int64_t row() const { return s.in[2] + 2 * s.pad[2]; }  // of the data, with its padding
    int64_t taps() const { return s.kernel[1] * s.kernel[2]; }
    int64_t width() const;  // the number of filters, rounded up to whole vectors
  };

 private:
  explicit ImageConvolution(const Sizes &sizes) : sizes_(sizes) {}

  const Sizes sizes_;
};

}  // namespace cohort
