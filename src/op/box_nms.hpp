// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression of boxes, and bipartite matching of rows and columns by score.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Input (..., boxes, width); outputs the same shape, and for each output row the index of its box, or -1. The backward
// kernel gets the head gradient and the second output.
struct BoxNmsAttrs {
  float overlap_thresh, valid_thresh;
  int32_t topk;  // below 0: all
  int32_t coord_start, score_index;
  int32_t id_index;  // below 0: there are no classes
  int32_t background_id;
  bool force_suppress;
  bool in_center, out_center;  // as BoxIouAttrs::center
};

// Input scores (..., rows, columns); outputs the column of each row and the row of each column, or -1.
struct BipartiteMatchingAttrs {
  bool is_ascend;
  float threshold;
  int32_t topk;  // not above 0: no limit
};

}  // namespace cohort
