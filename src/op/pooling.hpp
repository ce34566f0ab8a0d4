// SPDX-License-Identifier: Apache-2.0
// Maximum, mean, sum or p-norm over windows along 1 to 3 spatial axes. Pooling_v1, of old files, shares the attributes;
// its mean always divides by the kernel size, and its convention "full" never starts a window in the padding after the
// data.
#pragma once

#include "op/image_layout.hpp"

namespace cohort {

struct PoolingAttrs {
  enum Type : int32_t { kAvg, kLp, kMax, kSum };
  enum Convention : int32_t { kFull, kSame, kValid };
  Tuple kernel;       // empty only if global_pool
  Tuple stride, pad;  // completed: as many entries as kernel
  Type pool_type;
  bool global_pool;  // one window over all spatial axes; kernel, stride and pad are ignored
  Convention pooling_convention;
  std::optional<int32_t> p_value;         // for lp: 1, 2 or 3
  std::optional<bool> count_include_pad;  // for avg; none: true
  ImageLayout layout;
  bool v1 = false;  // the operator is Pooling_v1
};

// The effective window for data of this (known) shape.
struct PoolingWindow {
  Tuple kernel, stride, pad;
};
PoolingWindow pooling_window(const PoolingAttrs &a, const Shape &data);

// Defines the attributes of Pooling and of its quantized form.
OpBuilder<PoolingAttrs> &define_pooling(OpBuilder<PoolingAttrs> &op);

}  // namespace cohort
