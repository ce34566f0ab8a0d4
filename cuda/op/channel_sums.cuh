// SPDX-License-Identifier: Apache-2.0
// Sums of each channel of images, for gradients of biases: in parts, which are added up in order.
#pragma once

#include <algorithm>

#include "cuda/op/rows.cuh"
#include "kernels/convolution_sizes.hpp"

namespace cohort {

// Sums over the channels of arrays with the sizes of a convolution's result or, with of_data, of its data.
class ChannelSums {
 public:
  ChannelSums(const ConvolutionSizes &s, bool of_data)
      : batch_(s.batch),
        channels_(s.groups * (of_data ? s.in_channels : s.out_channels)),
        places_(convolution::volume(of_data ? s.in : s.out)),
        batch_step_(of_data ? s.in_batch_step : s.out_batch_step),
        channel_step_(of_data ? s.in_channel_step : s.out_channel_step) {
    // Enough parts to keep the device busy, each long enough to be worth it: one warp or one thread per part.
    const int64_t busy = 132 * (channels_last() ? 1024 : 64), least = channels_last() ? 64 : 1024;
    parts_ =
        std::clamp<int64_t>(busy / std::max<int64_t>(channels_, 1), 1, std::max<int64_t>(batch_ * places_ / least, 1));
  }
  size_t scratch_bytes(size_t element) const { return size_t(parts_ * channels_) * element; }

  // `scratch` holds elements of type C.
  template <typename C>
  void run(const Lane &lane, const Elements &values, const Elements &sums, void *scratch) const {
    C *const found = static_cast<C *>(scratch);
    const int64_t all = batch_ * places_, channels = channels_, parts = parts_, places = places_;
    const int64_t batch_step = batch_step_, channel_step = channel_step_;
    if (channels_last()) {
      for_each(lane, parts * channels, [=] __device__(int64_t unit) {
        const int64_t part = unit / channels, c = unit % channels, end = all * (part + 1) / parts;
        C sum = 0;
        for (int64_t i = all * part / parts; i < end; ++i) sum += load<C>(values, i * channels + c);
        found[unit] = sum;
      });
    } else {
      for_each_row(lane, parts * channels, [=] __device__(int64_t unit) {
        const int64_t part = unit / channels, c = unit % channels, begin = all * part / parts;
        const C sum = sum_along<C>(all * (part + 1) / parts - begin, [=](int64_t i) {
          const int64_t at = begin + i;
          return load<C>(values, at / places * batch_step + c * channel_step + at % places);
        });
        if (threadIdx.x == 0) found[unit] = sum;
      });
    }
    for_each(lane, channels, [=] __device__(int64_t c) {
      C sum = 0;
      for (int64_t part = 0; part < parts; ++part) sum += found[part * channels + c];
      store(sums, c, sum);
    });
  }

 private:
  bool channels_last() const { return channel_step_ == 1; }
  int64_t batch_, channels_, places_, batch_step_, channel_step_, parts_;
};

}  // namespace cohort
