// SPDX-License-Identifier: Apache-2.0
// Inputs that a backward step of FullyConnected, Convolution or Deconvolution does not read, for StepSpec::unread.
// Inputs are head gradient, data and weight: only the gradient of the data reads the weight, and only that of the
// weight reads the data.
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
