// SPDX-License-Identifier: Apache-2.0
// The source text of a fused point-wise program: straight code for one element, or for a vector of 16 bytes.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "op/fused_pointwise.hpp"

namespace cohort {

// The argument of its kernels, kFusedPlain and kFusedVectors: arrays of one type, with the wanted outputs only.
// kFusedVectors requires addresses that are multiples of 16. An output may be one of the inputs.
constexpr char kFusedPlain[] = "fused_plain", kFusedVectors[] = "fused_vectors";
struct FusedArrays {
  static constexpr int kMostInputs = 16, kMostOutputs = 48;
  const void *inputs[kMostInputs];
  void *outputs[kMostOutputs];
  int64_t count;
};

// dtype: a floating type.
std::string fused_source(const FusedPointwiseAttrs &attrs, const std::vector<bool> &wanted, Dtype dtype);

}  // namespace cohort
