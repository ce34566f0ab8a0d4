// SPDX-License-Identifier: Apache-2.0
// The matrix products of multi-head attention on interleaved projections: (length, batch, heads * parts * width), where
// each head holds query, key and value (self-attention), or key and value beside queries of their own (encoder to
// decoder), one behind another. Attention is (batch * heads, query length, key length).
#pragma once

#include "op/op.hpp"

namespace cohort {

struct InterleavedAttentionAttrs {
  int32_t heads;
  bool own_queries;  // keys and values alone lie interleaved
  bool scores;       // queries times keys / sqrt(width); else attention times values
};

}  // namespace cohort
