// SPDX-License-Identifier: Apache-2.0
// Returns data and adds to its gradient that of the Kullback-Leibler divergence between a target mean and the moving
// mean of each column.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data (batch, columns, ...), auxiliary moving_avg, which the forward pass updates in training and saves for
// backward.
struct SparseRegularizerAttrs {
  float sparseness_target, penalty, momentum;
};

}  // namespace cohort
