// SPDX-License-Identifier: Apache-2.0
// Which gradients are summed together, and in which order. For exchange.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "group/exchange_types.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

// Buckets are ranges of in_network_order().
struct GradientBuckets {
  std::vector<int> ends;        // positions; the last is the number of gradients
  std::vector<int> param_ends;  // the same in the parameters that have a gradient
  // Of the parameters' names, shapes and dtypes in their order, and where buckets end among them. Processes that are to
  // sum together have the same, whatever machines they run on.
  uint64_t hash = 0;
};

// Arguments in the order in which backward, node by node, is done with them: that of the nodes that read them first,
// the last of these first. Kernels, which may take nodes together, have no say in it, so that processes on machines of
// several kinds agree.
std::vector<int> in_network_order(const Graph &graph, std::vector<int> arguments);

// A function of names, positions, shapes and dtypes alone: of the network, not of the machine. `params` are in the
// order of their positions. bucket_bytes 0: chosen from the parameters.
GradientBuckets choose_buckets(const ExchangeParams &params, int num_gradients, size_t bucket_bytes);

// The same buckets, which end at `ends` in `order`, where backward is done with these arguments in an order of its own:
// each ends with the last of those that it has ended with.
std::vector<int> ends_in_order(const std::vector<int> &ends, const std::vector<int> &order,
                               const std::vector<int> &own);

}  // namespace cohort
