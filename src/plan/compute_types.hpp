// SPDX-License-Identifier: Apache-2.0
// The types in which a network computes: what the caller may request, and what follows for each node.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "op/op.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

// The range of a value's numbers; low > high: not known.
struct ValueRange {
  float low = 1, high = 0;
};
using ValueRanges = std::map<std::string, ValueRange>;  // by names of monitors: "conv0_output", "data"

struct ComputeTypes {
  bool tf32 = false;              // float32 products may round their factors to TF32, except in nodes listed in `wide`
  Dtype dtype = Dtype::kFloat32;  // for operators that may compute in a narrower type than their arrays (Op::precision)
  // Nodes and operators (meaning all their nodes) that keep the network's types, or compute in `dtype`, regardless of
  // Op::precision. An entry for a node overrides one for its operator.
  std::vector<std::string> wide, narrow;
  std::shared_ptr<const ValueRanges> ranges;  // kInt8: ranges of the values that may become int8
  bool all_known = true;                      // a name that is neither a node nor any operator is an error
};

// By node, overriding Op::precision; nodes without an entry follow their operator. Throws kName for an unknown name,
// kInvalidArgument for one in both lists.
std::map<int, Op::Precision> node_precisions(const Graph &graph, const ComputeTypes &types);

// The name that monitors give to a node's output or to a variable.
std::string value_name(const Node &node, int output);

// Per node and output; empty if nothing is known.
std::vector<std::vector<ValueRange>> node_ranges(const Graph &graph, const ComputeTypes &types);

}  // namespace cohort
