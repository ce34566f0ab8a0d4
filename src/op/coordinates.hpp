// SPDX-License-Identifier: Apache-2.0
// Coordinates and shapes as arrays: _ravel_multi_index, _unravel_index, _contrib_index_array, shape_array and
// size_array (NoAttrs).
#pragma once

#include "op/op.hpp"

namespace cohort {

struct RavelAttrs {
  Tuple shape;  // of the indexed array; the first length is not used and may be -1
};

struct IndexArrayAttrs {
  std::optional<Tuple> axes;  // none: all axes of data
};

// The axes of data whose coordinates are requested.
std::vector<int> asked_axes(const IndexArrayAttrs &a, int rank);

}  // namespace cohort
