// SPDX-License-Identifier: Apache-2.0
// y = gamma * (x - mean) / sqrt(var + eps) + beta for each channel. In training mean and var are those of the batch
// (var biased) and the moving averages follow: new = momentum * old + (1 - momentum) * batch value. As in MXNet, they
// do not follow in a frozen trunk, that is, if neither gamma, beta nor any argument before the layer has a gradient; a
// BlockGrad after the layer does not freeze it. An operator applied at once in training updates them; on a tape it is
// frozen in the same way.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data, gamma, beta, moving_mean, moving_var; outputs output, mean, var, where var is 1 / sqrt(var + eps). The
// backward kernel gets the head gradients (1, or 3 with output_mean_var, of which only the first counts), data and
// gamma, and what the forward kernel saved.
struct BatchNormAttrs {
  double eps;
  float momentum;
  bool fix_gamma;  // gamma counts as 1 and gets a zero gradient
  bool use_global_stats;
  bool output_mean_var;
  int32_t axis;                 // of the channels; negative counts from the last
  std::string key;              // for _contrib_SyncBatchNorm
  bool gives_variance = false;  // output 2 is the variance (_contrib_SyncBatchNorm)
};

// Sums that one device of a group computes over its share of a batch: the number of elements per channel, then for each
// channel the mean and the sum of squared deviations (forward), or the sums of the gradient and of its products with
// the normalised data (backward). All devices combine these in device order, so they get bit-identical results.
struct ChannelStats {
  double *numbers;

  COHORT_HOST_DEVICE double &count() const { return numbers[0]; }
  COHORT_HOST_DEVICE double &first(int64_t channel) const { return numbers[1 + 2 * channel]; }
  COHORT_HOST_DEVICE double &second(int64_t channel) const { return numbers[2 + 2 * channel]; }
  static COHORT_HOST_DEVICE int64_t size(int64_t channels) { return 1 + 2 * channels; }
};

// Statistics of one channel, combined over devices.
struct JoinedMoments {
  double count = 0, mean = 0, squares = 0;
  COHORT_HOST_DEVICE void add(const ChannelStats &found, int64_t channel) {
    if (found.count() == 0) return;
    const double both = count + found.count(), distance = found.first(channel) - mean;
    squares += found.second(channel) + distance * distance * (count * found.count() / both);
    mean += distance * (found.count() / both);
    count = both;
  }
  COHORT_HOST_DEVICE double variance() const { return count > 0 ? squares / count : 0; }
};
struct JoinedSums {
  double count = 0, gradients = 0, products = 0;
  COHORT_HOST_DEVICE void add(const ChannelStats &found, int64_t channel) {
    count += found.count(), gradients += found.first(channel), products += found.second(channel);
  }
};

}  // namespace cohort
