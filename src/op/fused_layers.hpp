// SPDX-License-Identifier: Apache-2.0
// Layers that MXNet fused for oneDNN, in floats or in int8: nodes that contain the layer's graph.
// symbol/fused_layer.hpp defines how they compute; here they are operators that run a graph once.
#pragma once

#include <optional>

#include "op/control_flow.hpp"

namespace cohort {

struct FusedLayerAttrs : ControlFlowAttrs {
  bool quantized = false;
  std::optional<float> min_calib_range, max_calib_range;
  bool with_bn = false, with_sum = false;  // _sg_mkldnn_conv
  // _sg_mkldnn_fully_connected; enable_float_output also for attention.
  bool enable_float_output = false, channel_wise_quantize = false;
  int32_t heads = 0;  // attention

  bool calibrated() const { return min_calib_range && max_calib_range; }
};

}  // namespace cohort
