// SPDX-License-Identifier: Apache-2.0
// The matrix products of multi-head attention on interleaved projections: (length, batch, heads * parts * width). Each
// head holds query, key and value (self-attention), or key and value with separate queries (encoder-decoder), one after
// another. Attention is (batch * heads, query length, key length).
#pragma once

#include "op/op.hpp"

namespace cohort {

struct InterleavedAttentionAttrs {
  int32_t heads;
  bool own_queries;  // only keys and values are interleaved; queries are a separate input
  bool scores;       // true: queries times keys / sqrt(width); false: attention times values
};

}  // namespace cohort
