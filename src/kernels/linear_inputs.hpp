// SPDX-License-Identifier: Apache-2.0
// What the backward steps of FullyConnected, Convolution and Deconvolution do without, for StepSpec::unread. Their
// inputs are head gradient, data and weight: the gradient of the data is made of the weight, that of the weight of the
// data.
#pragma once

#include <vector>

namespace cohort {

inline std::vector<int> unread_by_linear(bool reads_data, bool reads_weight) {
  std::vector<int> unread;
  if (!reads_data) unread.push_back(1);
  if (!reads_weight) unread.push_back(2);
  return unread;
}

}  // namespace cohort
