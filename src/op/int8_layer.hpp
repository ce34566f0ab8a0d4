// SPDX-License-Identifier: Apache-2.0
// Attributes of the plan's internal int8 steps (plan/quantize.cc). A byte q represents q * scale.
#pragma once

#include "op/op.hpp"

namespace cohort {

// "_int8_quantize", "_int8_dequantize": floats to bytes and back.
struct Int8CastAttrs {
  float scale;
};

// "_int8_weights" (weight[, bias]) -> (weight as int8, with a scale per output channel; factors; bias), and
// "_int8_NAME" for a layer NAME on (data, these three[, addend]). The layer adds the bias to its int32 sum of products,
// multiplies by the channel's factor to get units of `unit`, adds the addend, which is in the same units, applies the
// activation, and multiplies by `last`. Bias and factors are float32.
struct Int8LayerAttrs {
  Attrs layer;
  bool has_bias;
  float data_scale;  // scale of the data
  float unit;        // unit of the addend, else of the output; 1 if that is float32
  float last;        // converts units of the addend to those of the output
};

}  // namespace cohort
