// SPDX-License-Identifier: Apache-2.0
// Elements selected by coordinates: gather_nd, _backward_gather_nd, scatter_nd, _scatter_set_nd; and rows selected by
// index: _contrib_index_copy (NoAttrs).
#pragma once

#include "op/op.hpp"

namespace cohort {

struct ScatterAttrs {
  Tuple shape;  // of the output
};

// gather_nd has NoAttrs. indices is (M, ...): each column holds M coordinates along the first M axes of the array and
// selects one slice of it. gather_nd and its backward step count negative coordinates from the end. A coordinate out of
// range is an error when the step runs. Backward of gather_nd and scatter_nd: head gradient, indices.
// _contrib_index_copy, backward: head gradient, index_vector.

}  // namespace cohort
