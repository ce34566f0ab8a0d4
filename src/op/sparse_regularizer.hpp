// SPDX-License-Identifier: Apache-2.0
// Passes data on and adds to its gradient that of the Kullback-Leibler distance between a wanted mean and the moving
// mean of each column.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data (batch, columns, ...), auxiliary moving_avg, which training's forward pass brings up to date and saves
// for backward.
struct SparseRegularizerAttrs {
  float sparseness_target, penalty, momentum;
};

}  // namespace cohort
