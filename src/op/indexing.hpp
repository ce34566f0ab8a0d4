// SPDX-License-Identifier: Apache-2.0
// Elements selected by index or condition: take, pick, batch_take, one_hot, where; and stack, squeeze.
#pragma once

#include "op/op.hpp"

namespace cohort {

enum class IndexMode : int32_t { kClip, kRaise, kWrap };

struct TakeAttrs {  // backward: head gradient, indices
  int32_t axis;
  IndexMode mode;
};

struct PickAttrs {  // and batch_take; backward: head gradient, index
  std::optional<int32_t> axis;
  bool keepdims;
  IndexMode mode;
};

struct OneHotAttrs {
  int32_t depth;
  double on_value, off_value;
  Dtype dtype;
};

struct StackAttrs {
  int32_t axis;
};

struct SqueezeAttrs {
  std::optional<Tuple> axis;  // none: all axes of length 1
};

}  // namespace cohort
