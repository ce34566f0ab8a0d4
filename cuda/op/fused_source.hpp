// SPDX-License-Identifier: Apache-2.0
// The source text of a fused point-wise program: straight code for one element, or for a vector of 16 bytes.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "op/fused_pointwise.hpp"

namespace cohort {

// What its kernels, kFusedPlain and kFusedVectors, are given: arrays of one type; outputs that are wanted, no others.
// kFusedVectors wants addresses that are multiples of 16, and both do with outputs where inputs are.
constexpr char kFusedPlain[] = "fused_plain", kFusedVectors[] = "fused_vectors";
struct FusedArrays {
  static constexpr int kMostInputs = 16, kMostOutputs = 48;
  const void *inputs[kMostInputs];
  void *outputs[kMostOutputs];
  int64_t count;
};

// dtype: a floating one.
std::string fused_source(const FusedPointwiseAttrs &attrs, const std::vector<bool> &wanted, Dtype dtype);

}  // namespace cohort
