// SPDX-License-Identifier: Apache-2.0
// Layers that MXNet has fused for oneDNN, in floats or in bytes: a node with the graph of the layer inside it. How they
// compute is in symbol/fused_layer.hpp; here they are operators that run a graph once.
#pragma once

#include <optional>

#include "op/control_flow.hpp"

namespace cohort {

struct FusedLayerAttrs : ControlFlowAttrs {
  bool quantized = false;
  std::optional<float> min_calib_range, max_calib_range;
  bool with_bn = false, with_sum = false;  // of _sg_mkldnn_conv
  bool enable_float_output = false,
       channel_wise_quantize = false;  // of _sg_mkldnn_fully_connected; float output of attention, too
  int32_t heads = 0;                   // of attention

  bool calibrated() const { return min_calib_range && max_calib_range; }
};

}  // namespace cohort
