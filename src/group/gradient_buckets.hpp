// SPDX-License-Identifier: Apache-2.0
// Decides which gradients are summed together, and in which order. For exchange.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "group/exchange_types.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

// Buckets are ranges of in_network_order().
struct GradientBuckets {
  std::vector<int> ends;        // positions; the last is the number of gradients
  std::vector<int> param_ends;  // the same, counted in the parameters that have a gradient
  // Hash of the parameters' names, shapes and dtypes in their order, and of the ends of buckets. Processes that sum
  // together have the same hash, on any machine.
  uint64_t hash = 0;
};

// Arguments in the order in which backward, going node by node, finishes with them: by the first node that reads each,
// the last such node first. Kernels, which may fuse nodes, do not affect this order, so that processes on machines of
// several kinds agree.
std::vector<int> in_network_order(const Graph &graph, std::vector<int> arguments);

// Depends only on names, positions, shapes and dtypes: on the network, not on the machine. `params` are in the order of
// their positions. bucket_bytes 0: chosen from the parameters.
GradientBuckets choose_buckets(const ExchangeParams &params, int num_gradients, size_t bucket_bytes);

// Converts bucket ends in `order` to ends in `own`, the order in which an executor's backward finishes with the
// arguments: a bucket ends with the last of its arguments in that order.
std::vector<int> ends_in_order(const std::vector<int> &ends, const std::vector<int> &order,
                               const std::vector<int> &own);

}  // namespace cohort
