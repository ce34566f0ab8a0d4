// SPDX-License-Identifier: Apache-2.0
// The types in which a network computes: what whoever binds it may say, and what that is for each of its nodes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "op/op.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

// In which the numbers of a value lie; low > high: it is not known.
struct ValueRange {
  float low = 1, high = 0;
};
using ValueRanges = std::map<std::string, ValueRange>;  // by names of monitors: "conv0_output", "data"

struct ComputeTypes {
  bool tf32 = false;              // products of float32 may round their factors so, but for those in `wide`
  Dtype dtype = Dtype::kFloat32;  // of operators that may work in a narrower type than their arrays (Op::precision)
  // Nodes, and operators (all nodes of theirs), that keep the network's types, or work in `dtype`, whatever their
  // operator says. What is said of a node counts more than what is said of its operator.
  std::vector<std::string> wide, narrow;
  std::shared_ptr<const ValueRanges> ranges;  // kInt8: of the values that may be bytes
  bool all_known = true;                      // a name that is neither of a node nor of any operator is an error
};

// By node, in the place of Op::precision; those of which nothing is said are not in it. kName: a name that is not
// known; kInvalidArgument: one in both lists.
std::map<int, Op::Precision> node_precisions(const Graph &graph, const ComputeTypes &types);

// The name of an output of a node, or of a variable, as monitors have it.
std::string value_name(const Node &node, int output);

// Per node and output; empty: nothing is known.
std::vector<std::vector<ValueRange>> node_ranges(const Graph &graph, const ComputeTypes &types);

}  // namespace cohort
