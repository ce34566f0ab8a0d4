// SPDX-License-Identifier: Apache-2.0
// Maximum, mean, sum or p-norm of windows over 1 to 3 spatial axes. Pooling_v1, of old files, has kernels of the same
// attributes; its mean always divides by the size of the kernel, and its convention "full" never starts a window
// in the padding behind the data.
#pragma once

#include "op/image_layout.hpp"

namespace cohort {

struct PoolingAttrs {
  enum Type : int32_t { kAvg, kLp, kMax, kSum };
  enum Convention : int32_t { kFull, kSame, kValid };
  Tuple kernel;       // empty only if global_pool
  Tuple stride, pad;  // completed: as many entries as kernel
  Type pool_type;
  bool global_pool;  // one window, the whole of the spatial axes; kernel, stride and pad do not matter
  Convention pooling_convention;
  std::optional<int32_t> p_value;         // of lp: 1, 2 or 3
  std::optional<bool> count_include_pad;  // of avg; not given: true
  ImageLayout layout;
  bool v1 = false;  // the operator is Pooling_v1
};

// The window in effect for data of this (known) shape.
struct PoolingWindow {
  Tuple kernel, stride, pad;
};
PoolingWindow pooling_window(const PoolingAttrs &a, const Shape &data);

// The attributes of Pooling and of its like on bytes.
OpBuilder<PoolingAttrs> &define_pooling(OpBuilder<PoolingAttrs> &op);

}  // namespace cohort
