// SPDX-License-Identifier: Apache-2.0
// Attributes of the plan's own steps that work on bytes (plan/quantize.cc). A byte q stands for q * scale.
#pragma once

#include "op/op.hpp"

namespace cohort {

// "_int8_quantize", "_int8_dequantize": floats to bytes and back.
struct Int8CastAttrs {
  float scale;
};

// "_int8_weights" (weight[, bias]) -> (weight as int8, with a scale for each output channel; factors; bias), and
// "_int8_NAME" of a layer NAME, on (data, these three[, addend]): a sum of products, to which it adds the bias,
// becomes, times the factor of its channel, a number in units of `unit`; the addend is in these units, too; and after
// that all is times `last`. A bias and the factors are float32.
struct Int8LayerAttrs {
  Attrs layer;
  bool has_bias;
  float data_scale;  // of its data
  float unit;        // of the addend, else of the output; 1 of float32
  float last;        // from units of the addend to those of the output
};

}  // namespace cohort
