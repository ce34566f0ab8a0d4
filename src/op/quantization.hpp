// SPDX-License-Identifier: Apache-2.0
// Quantized arrays. An int8 array with range (min, max) represents its values times the larger absolute bound divided
// by 127.5; uint8 divides by 255.5, int32 by 2^31 - 1. Operators take and return the bounds as one-element arrays
// beside the data.
#pragma once

#include <cmath>

#include "op/convolution.hpp"
#include "op/fully_connected.hpp"
#include "op/op.hpp"
#include "op/pooling.hpp"

namespace cohort {

enum class QuantizedType : int32_t { kAuto, kInt8, kUint8 };

struct QuantizeAttrs {  // _contrib_quantize, _quantize_v2, _quantize_asym, _requantize; also the outputs of others
  QuantizedType out_type;
  std::optional<float> min_calib_range, max_calib_range;
  bool enable_float_output;  // for _contrib_quantized_elemwise_mul

  bool calibrated() const { return min_calib_range && max_calib_range; }
  // kAuto selects uint8 if the range has no negative values.
  Dtype dtype() const {
    if (out_type == QuantizedType::kAuto) {
      return calibrated() && *min_calib_range >= 0 ? Dtype::kUint8 : Dtype::kInt8;
    }
    return out_type == QuantizedType::kUint8 ? Dtype::kUint8 : Dtype::kInt8;
  }
};

struct CalibrateAttrs {
  int32_t num_quantized_bins;
};

struct QuantizedActAttrs {
  int32_t act_type;
};

struct QuantizedConcatAttrs {
  int32_t num_args, dim;
};

struct QuantizedBatchNormAttrs {
  double eps;
  int32_t axis;
  std::optional<float> min_calib_range, max_calib_range;
};

struct QuantizedEmbeddingAttrs {
  int32_t input_dim, output_dim;
  Dtype dtype;
};

COHORT_HOST_DEVICE inline float larger_bound(float low, float high) { return fmaxf(fabsf(low), fabsf(high)); }

// The value that 1 of a type represents, given the larger absolute bound.
COHORT_HOST_DEVICE inline double quantum(Dtype dtype, float bound) {
  return double(bound) / (dtype == Dtype::kUint8 ? 255.5 : dtype == Dtype::kInt8 ? 127.5 : 2147483647.0);
}

// The factor by which _contrib_quantize_v2 multiplies floats; computed in float, as in MXNet.
COHORT_HOST_DEVICE inline float byte_factor(Dtype dtype, float bound) {
  return bound > 0 ? (dtype == Dtype::kUint8 ? 255.5f : 127.5f) / bound : 0;
}

// The bound of the int32 product of two quantized arrays; its 1 represents the product of theirs. Uses 127 and 255, as
// MXNet does here.
COHORT_HOST_DEVICE inline float product_bound(Dtype a, float bound_a, Dtype b, float bound_b) {
  const float steps_a = a == Dtype::kUint8 ? 255.0f : 127.0f, steps_b = b == Dtype::kUint8 ? 255.0f : 127.0f;
  return (bound_a / steps_a) * (bound_b / steps_b) * 2147483647.0f;
}

// Converts an int8 bias to units of the product of data with int8 weights.
COHORT_HOST_DEVICE inline int32_t product_bias(Dtype data, float bound_data, float bound_weight, int8_t bias,
                                               float bound_bias) {
  const double unit = quantum(data, bound_data) * quantum(Dtype::kInt8, bound_weight);
  if (!(unit > 0)) return 0;
  const double units = double(bias) * quantum(Dtype::kInt8, bound_bias) / unit;
  return int32_t(units < -2147483648.0 ? -2147483648.0 : units > 2147483647.0 ? 2147483647.0 : units);
}

}  // namespace cohort
